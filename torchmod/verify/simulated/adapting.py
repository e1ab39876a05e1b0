"""Functions of torch for which it is not enough to track their operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchmod.verify.simulated.moves import move
from torchmod.verify.simulated.placement import tensors_in
from torchmod.verify.simulated.tags import index_of

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def ctc_loss(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    """Targets and lengths may be anywhere: C++ takes them where it wants them."""
    names = ("log_probs", "targets", "input_lengths", "target_lengths")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    if not all(name in given for name in names):
        return args, kwargs
    given["targets"] = move(given["targets"], index_of(given["log_probs"]))
    given.update({name: numbers(given[name]) for name in names[2:]})
    return (*(given.pop(name) for name in names), *args[4:]), given


def numbers(lengths: Any) -> Any:
    return tuple(lengths.tolist()) if isinstance(lengths, Tensor) else lengths


def on_one_device(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    """``meshgrid``: none of its operators sees two operands."""
    if len({index_of(tensor) for tensor in tensors_in(args)}) > 1:
        raise RuntimeError("torch.meshgrid expects all tensors to have the same device")
    return args, kwargs


ADAPTERS: dict[str, Callable[[tuple[Any, ...], dict[str, Any]], Arguments]] = {
    "ctc_loss": ctc_loss,
    "meshgrid": on_one_device,
}
"""By the name of the function: what its arguments become."""


def without_mkldnn(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function without MKL-DNN, which lacks some half precision that CUDA has."""
    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        return func(*args, **kwargs)
    finally:
        torch._C._set_mkldnn_enabled(enabled)
