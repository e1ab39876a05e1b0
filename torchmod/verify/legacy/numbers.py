"""Torch 0.3: one element of a plain tensor was a Python number, and a loss had the shape [1]."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from torchmod.verify.legacy.arithmetic import as_mask
from torchmod.verify.legacy.caller import is_torch
from torchmod.verify.legacy.record import fired
from torchmod.verify.legacy.variables import is_variable

Function = Callable[..., Any]
_parts: Any = Tensor.__iter__


def element(func: Function, tensor: Tensor, index: Any) -> Any:
    """``tensor[index]``: `loss.data[0]` is a number, `loss[0]` a Variable."""
    if not tensor.dim() and isinstance(index, int) and index in (0, -1):
        fired["[0] of one element"] += 1
        return tensor if is_variable(tensor) else tensor.item()
    result = func(tensor, as_mask(index))
    return result if is_variable(tensor) else number(result, "an element of a tensor is a number")


def reduction(func: Function, *args: Any, **kwargs: Any) -> Any:
    """``tensor.sum()`` and the like, over the whole tensor."""
    result = func(*args, **kwargs)
    if kwargs or len(args) > 1 or not isinstance(args[0], Tensor) or is_variable(args[0]):
        return result
    return number(result, "a reduction of a tensor is a number")


def number(result: Any, what: str) -> Any:
    if isinstance(result, Tensor) and not result.dim():
        fired[what] += 1
        return result.item()
    return result


def parts(tensor: Tensor) -> Iterator[Any]:
    """``for part in tensor``, which no mode sees."""
    if tensor.dim() > 1 or (tensor.dim() and is_variable(tensor)) or is_torch(sys._getframe(1)):
        whole: Iterator[Any] = _parts(tensor)
        return whole
    fired["parts of a tensor are numbers"] += 1
    return iter([tensor] if is_variable(tensor) else tensor.reshape(-1).tolist())


def length(func: Function, tensor: Tensor) -> Any:
    return func(tensor) if tensor.dim() else noted(1)


def size(func: Function, tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
    if tensor.dim():
        return func(tensor, *args, **kwargs)
    return noted(1) if args or kwargs else noted(torch.Size([1]))


def on_one_element(func: Function, tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
    """``numpy()`` and ``tolist()``, as of a tensor with the shape [1]."""
    return func(tensor if tensor.dim() else noted(tensor.reshape(1)), *args, **kwargs)


def joined(func: Function, tensors: Any, *args: Any, **kwargs: Any) -> Any:
    """``torch.cat`` of losses."""
    return func([one if one.dim() else noted(one.reshape(1)) for one in tensors], *args, **kwargs)


def noted(value: Any) -> Any:
    fired["shape [1] of one element"] += 1
    return value


UNTIL_0_3: dict[str, Function] = {
    "__getitem__": element,
    "__len__": length,
    "size": size,
    "numpy": on_one_element,
    "tolist": on_one_element,
    "cat": joined,
    **dict.fromkeys(("max", "mean", "median", "min", "norm", "prod", "std", "sum", "var"), reduction),
}
