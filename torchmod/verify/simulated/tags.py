"""Which device a tensor is on: a tag on its storage. The values themselves stay in the CPU's memory.

The Python object of an untyped storage lives as long as the storage does. So the tag follows views, ``.data``,
``detach``, ``param.data = …``, operators in place and autograd by itself, and its end is the end of the memory.
No tag means CPU.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from torchmod.verify.simulated.machine import Index, machine

TAG = "_torchmod_device"
UNPLACED = "_torchmod_unplaced"
"""Marks the storage of a tensor that the engine of autograd made, and believes to be on the CPU."""
CPU = torch.device("cpu")
RELEASE = "_torchmod_release"
"""What gives the memory of a storage back."""
LEGACY_NAMES = {
    torch.float32: "Float",
    torch.float64: "Double",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.complex64: "ComplexFloat",
    torch.complex128: "ComplexDouble",
    torch.int64: "Long",
    torch.int32: "Int",
    torch.int16: "Short",
    torch.int8: "Char",
    torch.uint8: "Byte",
    torch.bool: "Bool",
}
_storage = torch._C.TensorBase.untyped_storage


def index_of(tensor: Tensor) -> Index:
    """The device that a tensor is on."""
    with torch._C.DisableTorchFunction():
        try:
            return getattr(_storage(tensor), TAG, None)
        except (NotImplementedError, RuntimeError):  # not a strided tensor, or one within another
            return getattr(next(holders(tensor)), TAG, None)


def holders(tensor: Tensor) -> Iterator[Any]:
    """What carries the tag: the storage; those of the parts of a sparse tensor; else the tensor itself."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    parts = [tensor]
    if tensor.layout is torch.sparse_coo:
        parts = [tensor._values(), tensor._indices()]
    elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        parts = [tensor.values(), tensor.crow_indices(), tensor.col_indices()]
    elif tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        parts = [tensor.values(), tensor.ccol_indices(), tensor.row_indices()]
    for part in parts:
        try:
            yield _storage(part)
        except (NotImplementedError, RuntimeError):  # a subclass without a storage of its own
            yield part


def tag(tensor: Tensor, index: Index) -> Tensor:
    """Put a new tensor on a device; one that is on a device already stays there."""
    if index is None or tensor.is_meta:
        return tensor
    for holder in holders(tensor):
        if getattr(holder, TAG, None) is None:
            tag_storage(holder, index)
    return tensor


def leave_unplaced(tensor: Tensor) -> None:
    """Let a tensor belong wherever it is used, until it is written to."""
    for holder in holders(tensor):
        setattr(holder, UNPLACED, True)


def is_unplaced(tensor: Tensor) -> bool:
    """Whether a tensor of the backward pass that runs belongs wherever it is used."""
    return torch._C._current_graph_task_id() != -1 and is_marked(tensor)


def is_marked(tensor: Tensor) -> bool:
    with torch._C.DisableTorchFunction():
        return any(getattr(holder, UNPLACED, False) for holder in holders(tensor))


def settle(tensor: Tensor | None, index: Index) -> None:
    """Put a tensor on a device, if it belongs wherever it is used: this is the place."""
    if tensor is None or not is_marked(tensor):
        return
    for holder in holders(tensor):
        setattr(holder, UNPLACED, False)
        if getattr(holder, TAG, None) != index:
            untag_storage(holder)
    tag(tensor, index)


def tag_storage(storage: Any, index: int) -> None:
    """Put a storage on a device and count its memory there for as long as it lives."""
    setattr(storage, TAG, index)
    size = storage.nbytes if isinstance(storage, Tensor) else storage.nbytes()
    machine.allocate(index, size)
    release = weakref.finalize(storage, machine.free, index, size)
    release.atexit = False
    setattr(storage, RELEASE, release)


def untag_storage(storage: Any) -> None:
    """Take a storage from its device, if it is on one, and give the memory back."""
    if getattr(storage, TAG, None) is not None:
        getattr(storage, RELEASE)()
        setattr(storage, TAG, None)


def index_for(device: Any) -> Index:
    """The device that a string, a number or a ``torch.device`` means; raises as CUDA does when it is not there."""
    if isinstance(device, bool) or not isinstance(device, int | str | torch.device):
        raise TypeError(f"invalid device: {device!r}")
    if not isinstance(device, int):
        device = torch.device(device) if isinstance(device, str) else device
        if device.type != "cuda":
            return None
        device = machine.local.current if device.index is None else device.index
    if device < 0:
        return None
    if device >= machine.count:
        raise torch.AcceleratorError("CUDA error: invalid device ordinal")
    return int(device)


def device_at(index: Index) -> torch.device:
    return CPU if index is None else torch.device("cuda", index)


def type_name(tensor: Tensor) -> str:
    """The name that a tensor's type has had from the beginning, such as ``torch.cuda.FloatTensor``."""
    where = "torch." if index_of(tensor) is None else "torch.cuda."
    sparse = "sparse." if tensor.layout is torch.sparse_coo else ""
    return f"{where}{sparse}{LEGACY_NAMES.get(tensor.dtype, str(tensor.dtype))}Tensor"
