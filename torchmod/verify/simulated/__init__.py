"""A CUDA device that is not there, for a machine without one.

The values are the CPU's; where a tensor is, is a tag on its storage. A mode below autograd checks that operands are on
one device and tags the results, a mode above it knows for which device the C++ code of a function works, and the Python
attributes of ``torch.Tensor``, ``torch.cuda`` and the like answer from the tags.

Not simulated: asynchrony, running out of memory, the limits and rounding of the kernels, compilation and
TorchScript (both give back what they are given), NCCL and CUDA IPC, extensions, and processes that are spawned.
"""

from __future__ import annotations

from typing import Any

import torch

from torchmod.verify.simulated import (
    backward,
    legacy_types,
    modes,
    patches_cuda,
    patches_making,
    patches_parallel,
    patches_tensor,
)
from torchmod.verify.simulated.machine import machine
from torchmod.verify.simulated.patching import replace


def real_cuda() -> bool:
    """Whether this machine has a CUDA device of its own that torch can use."""
    return not machine.installed and torch.cuda.is_available()


def install(devices: int = 2) -> None:
    """Pretend that there are CUDA devices. This cannot be undone: only a child process may do it."""
    if machine.installed:
        raise RuntimeError("the simulated device is installed already")
    machine.installed = devices
    for part in (patches_tensor, legacy_types, patches_making, patches_cuda, patches_parallel, backward):
        part.install()
    replace(torch, compile=compile_nothing)
    replace(torch.jit, script=script_nothing, trace=trace_nothing)
    modes.track_new_threads()
    modes.track_this_thread()


def compile_nothing(model: Any = None, **options: Any) -> Any:
    """``torch.compile``, as a function and as a decorator with options."""
    return model if model is not None else lambda function: function


def script_nothing(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """``torch.jit.script``."""
    return obj


def trace_nothing(func: Any, *args: Any, **kwargs: Any) -> Any:
    """``torch.jit.trace``."""
    return func
