"""Making tensors from data, storages and generators on a device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchmod.verify.simulated.machine import Index, machine
from torchmod.verify.simulated.modes import PINNED, default_index
from torchmod.verify.simulated.moves import move, on_device, use_device
from torchmod.verify.simulated.patching import replace
from torchmod.verify.simulated.tags import TAG, device_at, index_for, index_of, tag_storage

SEED_MASK = 0x5DEECE66D
"""A seed gives other numbers on a device than on the CPU."""
_tensor, _as_tensor, _asarray = torch.tensor, torch.as_tensor, torch.asarray
_sparse_coo_tensor = torch.sparse_coo_tensor
_Generator = torch._C.Generator
_Storage = torch.UntypedStorage
_storage_device: Any = torch.UntypedStorage.device


def install() -> None:
    replace(
        torch,
        tensor=tensor,
        as_tensor=as_tensor,
        asarray=asarray,
        sparse_coo_tensor=sparse_coo_tensor,
        Generator=Generator,
    )
    replace(
        _Storage,
        device=property(storage_device),
        is_cuda=property(lambda storage: getattr(storage, TAG, None) is not None),
        to=storage_to,
        clone=lambda storage: storage_copy(storage, getattr(storage, TAG, None)),
    )
    machine.generators = tuple(Generator(torch.device("cuda", number)) for number in range(machine.installed))


# tensors


def tensor(data: Any, *, device: Any = None, pin_memory: bool = False, **kwargs: Any) -> Tensor:
    with torch._C.DisableTorchFunction(), machine.untracked():
        made = _tensor(data, **kwargs)
    if pin_memory:
        setattr(made.untyped_storage(), PINNED, True)
    return on_device(made, wanted(data, device))


def as_tensor(data: Any, dtype: torch.dtype | None = None, device: Any = None) -> Tensor:
    index = wanted(data, device)
    if isinstance(data, Tensor):
        return move(data, index, dtype)
    with torch._C.DisableTorchFunction():
        return move(_as_tensor(data, dtype=dtype, device="cpu"), index)


def asarray(obj: Any, *, device: Any = None, copy: bool | None = None, **kwargs: Any) -> Tensor:
    index = wanted(obj, device)
    if isinstance(obj, Tensor):
        return move(obj, index, kwargs.get("dtype"), copy=bool(copy))
    with torch._C.DisableTorchFunction():
        return move(_asarray(obj, device="cpu", copy=copy, **kwargs), index)


def sparse_coo_tensor(*args: Any, device: Any = None, **kwargs: Any) -> Tensor:
    made = _sparse_coo_tensor(*args, **kwargs)
    return made if device is None else move(made, index_for(device))


def wanted(data: Any, device: Any) -> Index:
    """Where a tensor made from data belongs."""
    if device is not None:
        return index_for(device)
    return index_of(data) if isinstance(data, Tensor) else default_index()


# storages


def storage_device(storage: Any) -> torch.device:
    index = getattr(storage, TAG, None)
    device: torch.device = _storage_device.__get__(storage) if index is None else device_at(index)
    return device


def storage_to(storage: Any, *, device: Any, non_blocking: bool = False) -> Any:
    index = index_for(device)
    return storage if index == getattr(storage, TAG, None) else storage_copy(storage, index)


def storage_copy(storage: Any, index: Index) -> Any:
    with machine.untracked():
        copy = _Storage(storage.nbytes()).copy_(storage)
    if index is not None:
        use_device()
        tag_storage(copy, index)
    return copy


# generators


class _GeneratorType(type(_Generator)):  # type: ignore[misc]
    """``isinstance`` holds for torch's own generators too, such as ``torch.default_generator``."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Generator)


class Generator(_Generator, metaclass=_GeneratorType):
    """A generator of the CPU that says it is on a device."""

    index: Index

    def __new__(cls, device: Any = "cpu") -> Generator:
        index = index_for(device)
        made: Generator = super().__new__(cls, device if index is None else "cpu")  # type: ignore[call-arg]
        made.index = index
        if index is not None:
            made.manual_seed(_Generator.initial_seed(made))
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return device_at(self.index)

    def manual_seed(self, seed: int) -> Generator:
        super().manual_seed(seed if self.index is None else seed ^ SEED_MASK)
        return self

    def initial_seed(self) -> int:
        seed = super().initial_seed()
        return seed if self.index is None else seed ^ SEED_MASK
