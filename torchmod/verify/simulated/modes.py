"""The two modes that stand between a program and torch's operators: one tracks devices, one knows the outer call."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import TorchDispatchMode

from torchmod.verify.simulated import autocast
from torchmod.verify.simulated.adapting import ADAPTERS
from torchmod.verify.simulated.machine import Index, machine
from torchmod.verify.simulated.moves import use_device
from torchmod.verify.simulated.placement import Operand, operands_of, place_of, rule_of, tensors_in
from torchmod.verify.simulated.tags import CPU, device_at, index_for, index_of, is_unplaced, leave_unplaced, settle, tag

CPU_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
PINNED = "_torchmod_pinned"
ACCESSORS = {"__get__", "__set__"}
"""Reading and setting attributes makes nothing new."""
FACTORIES = {
    *("arange", "empty", "eye", "full", "linspace", "logspace", "ones"),
    *("rand", "randint", "randn", "randperm", "range", "zeros"),
}
"""Functions for which a tensor is only a number."""


class Tracking(TorchDispatchMode):
    """Below autograd, for each operator: check the operands, run it on the CPU, tag the results."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first operator imports torch._dynamo, which takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if machine.local.untracked:
            return func(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunction():
            return run(func, args, dict(kwargs or {}))


def run(operator: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Run an operator as if its tensors were where their tags say."""
    request = keywords.get("device")
    wanted = index_for(request) if request is not None else None
    if wanted is not None:
        use_device()
        keywords["device"] = CPU
    pinned = bool(keywords.get("pin_memory"))
    if pinned:
        keywords["pin_memory"] = False
    rule = rule_of(operator)
    operands = operands_of(arguments, keywords)
    index = place_of(operator, operands, request, wanted)
    if operator.namespace != "aten" and all(is_plain(tensor) for tensor in tensors_in((arguments, keywords))):
        with Tracking():  # it may be written in Python, and ask its operands where they are
            result = operator.redispatch(CPU_KEYS, *arguments, **keywords)
    elif rule.draws and index is not None and keywords.get("generator") is None:
        with machine.drawing_on(index):
            result = operator(*arguments, **keywords)
    else:
        result = operator(*arguments, **keywords)
    if index is not None or pinned:
        for number, tensor in enumerate(tensors_in(result)):
            if number not in rule.host_results:
                tag(tensor, index)
            if pinned:
                setattr(tensor.untyped_storage(), PINNED, True)
    if machine.local.in_engine:
        note_placement(result, operands, index)
    return result


def note_placement(result: Any, operands: list[Operand], index: Index) -> None:
    """Keep account of the tensors of the engine of autograd, which do not know where they belong."""
    undecided = all(is_unplaced(tensor) for _, tensor, _ in operands)
    for tensor in tensors_in(result):
        if undecided:
            leave_unplaced(tensor)
        else:
            settle(tensor, index)


def is_plain(tensor: Tensor) -> bool:
    """Whether a tensor is neither quantized nor of another library."""
    return torch._C._dispatch_keys(tensor).has(torch._C.DispatchKey.CPU)


class Ambient(TorchFunctionMode):
    """Above autograd, for each function of torch: remember for which device it works while it runs.

    C++ code that makes tensors inside a function names the CPU, because it believes to be there.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.device:
            return device_from(args, kwargs)
        name = getattr(func, "__name__", "")
        if name in ACCESSORS:
            return func(*args, **kwargs)
        if name in ADAPTERS:
            args, kwargs = ADAPTERS[name](args, kwargs)
        device = kwargs.get("device")
        if isinstance(device, int):
            device = device_at(index_for(device))
            kwargs = {**kwargs, "device": device}
        operands = () if name in FACTORIES else (args, kwargs)
        ambient = ambient_of(tensors_in(operands), device)
        if isinstance(kwargs.get("generator"), torch._C.Generator):
            check_generator(kwargs["generator"], ambient)
        local = machine.local
        before = local.in_call, local.ambient, local.device_given, local.in_engine
        local.in_call, local.ambient, local.device_given, local.in_engine = True, ambient, device is not None, False
        try:
            if ambient is not None and autocast.is_on():
                return autocast.call(func, args, kwargs)
            return func(*args, **kwargs)
        finally:
            local.in_call, local.ambient, local.device_given, local.in_engine = before


def device_from(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.device:
    """``torch.device(…)``, where a number alone is a CUDA device."""
    if len(args) == 1 and isinstance(args[0], int) and not isinstance(args[0], bool):
        return torch.device("cuda", args[0])
    return torch.device(*args, **kwargs)


def ambient_of(operands: Iterable[Tensor], device: Any) -> Index:
    """For which device a call works: that of an operand, else the one that it names, else the default."""
    seen = False
    for tensor in operands:
        seen = True
        index = index_of(tensor)
        if index is not None:
            return index
    if isinstance(device, str | torch.device):
        return index_for(device)
    return None if seen else default_index()


def default_index() -> Index:
    """Where tensors are made when nothing is said: as ``torch.device`` and the setters of defaults left it."""
    for mode in reversed(_get_current_function_mode_stack()):
        if isinstance(mode, DeviceContext):
            return index_for(mode.device)
    chosen = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return machine.default if chosen is None else index_for(chosen.device)


def check_generator(generator: torch._C.Generator, ambient: Index) -> None:
    """Refuse a generator of another kind of device, as torch does."""
    wanted, found = device_at(ambient).type, generator.device.type
    if wanted != found:
        raise RuntimeError(f"Expected a '{wanted}' device type for generator but found '{found}'")


@contextmanager
def tracked() -> Iterator[None]:
    """Both modes, for this thread."""
    with Tracking(), Ambient():
        yield


def track_this_thread() -> None:
    """Both modes, for the rest of this thread."""
    for mode in (Tracking(), Ambient()):
        mode.__enter__()  # type: ignore[no-untyped-call]


def track_new_threads() -> None:
    """Both modes in every thread that is started from now on: torch keeps its modes by thread."""
    start = threading.Thread.start

    @functools.wraps(start)
    def start_tracked(self: threading.Thread) -> None:
        run_thread = self.run

        def run_tracked() -> None:
            with tracked():
                run_thread()

        self.run = run_tracked  # type: ignore[method-assign]
        start(self)

    threading.Thread.start = start_tracked  # type: ignore[method-assign]
