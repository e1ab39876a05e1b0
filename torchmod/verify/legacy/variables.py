"""Tensors and Variables of torch 0.3, which are one thing today: which is which, and which is volatile."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from torchmod.verify.legacy.record import fired

_modern: Any = torch.autograd.Variable
_variables: Any = WeakTensorKeyDictionary()
"""The tensors that were Variables then; True for those that were volatile."""


def is_variable(tensor: Tensor) -> bool:
    return tensor.requires_grad or isinstance(tensor, torch.nn.Parameter) or tensor in _variables


def is_volatile(tensor: Tensor) -> bool:
    return bool(_variables.get(tensor, False))


def mark(tensors: Iterable[Tensor], *, volatile: bool) -> None:
    for tensor in tensors:
        _variables[tensor] = volatile


class _VariableType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and is_variable(instance)

    def __getattr__(cls, name: str) -> Any:
        return getattr(_modern, name)


class Variable(metaclass=_VariableType):
    """``torch.autograd.Variable`` of torch 0.3: a tensor that may be volatile, and is no plain tensor."""

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = False, volatile: bool = False) -> Any:
        if requires_grad and volatile:
            raise RuntimeError("Variable can't be volatile and require_grad at the same time!")
        made = torch.empty(0) if data is None else data.detach()
        made.requires_grad_(requires_grad)
        mark([made], volatile=volatile)
        if volatile:
            fired["volatile"] += 1
        return made


def set_volatile(tensor: Tensor, volatile: bool) -> None:
    """``x.volatile = True``."""
    if volatile:
        fired["volatile"] += 1
    mark([tensor], volatile=volatile)
