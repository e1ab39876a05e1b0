"""The tensor types of the first releases, ``torch.FloatTensor``, ``torch.cuda.LongTensor`` and so on."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchmod.verify.simulated.machine import machine
from torchmod.verify.simulated.moves import on_device
from torchmod.verify.simulated.patching import replace
from torchmod.verify.simulated.tags import LEGACY_NAMES, type_name


class LegacyType(type):
    """The type of such a type: it answers for tensors of one dtype, one layout and one kind of device."""

    dtype: torch.dtype
    layout: torch.layout
    is_cuda: bool
    is_sparse: bool
    on_cpu: Any
    """The same type of torch itself, for the CPU."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and type_name(instance) == cls.full_name

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        if args and isinstance(args[0], Tensor) and not cls.is_sparse:
            if type_name(args[0]) != cls.full_name:
                raise TypeError(f"expected {cls.full_name} (got {type_name(args[0])})")
            return args[0].detach()
        if cls.is_sparse:
            sparse: Tensor = cls.on_cpu(*args, **kwargs)  # its parts say where it is
            return sparse
        with torch._C.DisableTorchFunction(), machine.untracked():
            made: Tensor = cls.on_cpu(*args, **kwargs)
        return on_device(made, machine.local.current) if cls.is_cuda else made

    @property
    def full_name(cls) -> str:
        return f"{cls.__module__}.{cls.__name__}"


TYPES: dict[str, LegacyType] = {}


def install() -> None:
    for dtype, name in LEGACY_NAMES.items():
        for is_sparse in (False, True):
            on_cpu = getattr(torch.sparse if is_sparse else torch, f"{name}Tensor", None)
            if on_cpu is None:
                continue
            for is_cuda in (False, True):
                kind = made(f"{name}Tensor", dtype, is_sparse, is_cuda, on_cpu)
                TYPES[kind.full_name] = kind
                base = torch.cuda if is_cuda else torch
                replace(base.sparse if is_sparse else base, **{kind.__name__: kind})
    replace(torch, set_default_tensor_type=set_default_tensor_type)


def made(name: str, dtype: torch.dtype, is_sparse: bool, is_cuda: bool, on_cpu: Any) -> LegacyType:
    facts = {
        "__module__": "torch" + ".cuda" * is_cuda + ".sparse" * is_sparse,
        "dtype": dtype,
        "layout": torch.sparse_coo if is_sparse else torch.strided,
        "is_cuda": is_cuda,
        "is_sparse": is_sparse,
        "on_cpu": on_cpu,
    }
    return LegacyType(name, (), facts)


def legacy_type(given: Any) -> LegacyType:
    """The type that a name or a class means."""
    if given is Tensor or given == "torch.Tensor":
        where = "torch." if machine.default is None else "torch.cuda."
        given = f"{where}{LEGACY_NAMES[torch.get_default_dtype()]}Tensor"
    name = given if isinstance(given, str) else f"{given.__module__}.{given.__name__}"
    if name not in TYPES:
        raise ValueError(f"invalid type: '{name}'")
    return TYPES[name]


def set_default_tensor_type(given: Any, /) -> None:
    kind = legacy_type(given)
    torch.set_default_dtype(kind.dtype)
    machine.default = machine.local.current if kind.is_cuda else None
