"""Moving a tensor between devices: a copy, differentiable and not a leaf, as it is on a GPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchmod.verify.simulated.machine import Index, machine
from torchmod.verify.simulated.tags import index_of, settle, tag

_to = torch._C.TensorBase.to


def move(
    tensor: Tensor,
    index: Index,
    dtype: torch.dtype | None = None,
    *,
    copy: bool = False,
    memory_format: torch.memory_format = torch.preserve_format,
) -> Tensor:
    """The tensor on a device, in a dtype; the tensor itself when there is nothing to do."""
    here = index_of(tensor)
    dtype = dtype or tensor.dtype
    if here == index:
        return _to(tensor, dtype, copy=copy, memory_format=memory_format)
    refuse_meta(tensor)
    if index is not None:
        use_device()
    moved: Tensor = _Move.apply(tensor, here, index, dtype, memory_format)  # type: ignore[no-untyped-call]
    return moved


def refuse_meta(tensor: Tensor) -> None:
    if tensor.is_meta:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")


def use_device() -> None:
    """What CUDA does before its first use; raises in a process forked after that."""
    torch.cuda._lazy_init()


class _Move(torch.autograd.Function):
    """The copy from device to device; its gradient goes the other way."""

    @staticmethod
    def forward(tensor: Tensor, here: Index, index: Index, dtype: torch.dtype, form: torch.memory_format) -> Tensor:
        return copied(tensor, index, dtype, form)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.here, ctx.index, ctx.dtype = inputs[1], inputs[2], inputs[0].dtype

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        settle(gradient, ctx.index)
        return move(gradient, ctx.here, ctx.dtype), None, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], tensor: Tensor, *rest: Any) -> tuple[Tensor, Any]:
        moved: Tensor = _Move.apply(tensor, *rest)  # type: ignore[no-untyped-call]
        return moved, in_dims[0]


def copied(tensor: Tensor, index: Index, dtype: torch.dtype, form: torch.memory_format) -> Tensor:
    """A copy of the values, on a device; not differentiable."""
    with torch._C.DisableTorchFunction(), torch.no_grad(), machine.untracked():
        copy = _to(tensor.detach(), dtype, copy=True, memory_format=form)
        return tag(copy, index)


def on_device(tensor: Tensor, index: Index) -> Tensor:
    """A tensor that was just made, put on a device without a copy."""
    if index is not None:
        use_device()
    return tag(tensor, index)
