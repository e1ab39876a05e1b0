"""Comparisons, masks and arithmetic as they were.

Before torch 1.2 a comparison gave bytes. Before 1.3 a number was made an integer beside an integer tensor. Before 1.5
the division of integers, and `//` in any case, cut off the fraction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchmod.verify.legacy.record import fired

Function = Callable[..., Any]
"""A function of torch, or a rule: one that takes the function of torch before the arguments."""
NAMES_OF_COMPARISONS = (
    *("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite"),
    *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"),
)
NAMES_WITH_MASKS = (
    *("masked_fill", "masked_fill_", "masked_select", "masked_scatter", "masked_scatter_", "where"),
    *("__getitem__", "__setitem__"),
)
NAMES_OF_ARITHMETIC = (
    *("add", "add_", "sub", "sub_", "rsub", "__rsub__", "mul", "mul_"),
    *("remainder", "remainder_", "pow", "pow_"),
)


def to_bytes(func: Function, *args: Any, **kwargs: Any) -> Any:
    """A comparison."""
    result = func(*args, **kwargs)
    if isinstance(result, Tensor) and result.dtype is torch.bool:
        fired["comparison gives bytes"] += 1
        return result.byte()
    return result


def with_masks(func: Function, *args: Any, **kwargs: Any) -> Any:
    """A function that takes bytes for a mask; its first argument is one only in `where`."""
    first = 0 if getattr(func, "__name__", "") == "where" and len(args) > 1 and isinstance(args[1], Tensor) else 1
    masks = [as_mask(value) for value in args[first:]]
    return func(*args[:first], *masks, **{name: as_mask(value) for name, value in kwargs.items()})


def as_mask(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(as_mask(item) for item in value)
    if isinstance(value, Tensor) and value.dtype is torch.uint8:
        fired["bytes as a mask"] += 1
        return value.bool()
    return value


def inverted(func: Function, tensor: Tensor) -> Tensor:
    """``~mask``."""
    if tensor.dtype is not torch.uint8:
        result: Tensor = func(tensor)
        return result
    fired["~ of bytes"] += 1
    return 1 - tensor


def divided(func: Function, first: Any, second: Any, *args: Any, **kwargs: Any) -> Any:
    """``/``, ``div`` and ``div_``."""
    if args or kwargs or not all(is_integral(value) for value in (first, second)):
        return func(first, second, *args, **kwargs)
    fired["division of integers cuts off"] += 1
    return cut_off(func, first, second)


def floored(func: Function, first: Any, second: Any) -> Any:
    """``//``."""
    fired["// cuts off"] += 1
    return cut_off(func, first, second)


def cut_off(func: Function, first: Any, second: Any) -> Tensor:
    name = getattr(func, "__name__", "")
    if name in ("__rdiv__", "__rfloordiv__"):
        return torch.div(first.new_tensor(second), first, rounding_mode="trunc")
    if name in ("div_", "floor_divide_"):
        changed: Tensor = first.div_(second, rounding_mode="trunc")
        return changed
    return torch.div(first, second, rounding_mode="trunc")


def is_integral(value: Any) -> bool:
    if isinstance(value, Tensor):
        return not (value.is_floating_point() or value.is_complex() or value.dtype is torch.bool)
    return isinstance(value, int)


def with_whole_numbers(rule: Function) -> Function:
    """The rule, with each number made an integer beside an integer tensor."""

    def wrapped(func: Function, *args: Any, **kwargs: Any) -> Any:
        tensor = next((value for value in args if isinstance(value, Tensor) and is_integral(value)), None)
        if tensor is not None:
            args = tuple(whole(value, tensor) for value in args)
        return rule(func, *args, **kwargs)

    return wrapped


def whole(value: Any, beside: Tensor) -> Any:
    if isinstance(value, float) and math.isfinite(value):
        fired["a number becomes an integer"] += 1
        return int(value)
    if isinstance(value, Tensor) and value.is_floating_point() and not value.dim() and beside.dim():
        fired["a number becomes an integer"] += 1
        return value.trunc().to(beside.dtype)
    return value


def unchanged(func: Function, *args: Any, **kwargs: Any) -> Any:
    return func(*args, **kwargs)


DIVISIONS: dict[str, Function] = {
    **dict.fromkeys(("div", "div_", "__rdiv__"), divided),
    **dict.fromkeys(("floor_divide", "floor_divide_", "__floordiv__", "__rfloordiv__"), floored),
}
MASKS: dict[str, Function] = dict.fromkeys(NAMES_WITH_MASKS, with_masks)
UNTIL_1_4: dict[str, Function] = {**DIVISIONS, **MASKS}
UNTIL_1_1: dict[str, Function] = {
    **MASKS,
    **{name: with_whole_numbers(rule) for name, rule in DIVISIONS.items()},
    **dict.fromkeys(NAMES_OF_ARITHMETIC, with_whole_numbers(unchanged)),
    **dict.fromkeys(NAMES_OF_COMPARISONS, with_whole_numbers(to_bytes)),
    "__invert__": inverted,
}
