"""On which device the result of an operator is, and whether its operands may meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from torchmod.verify.simulated.machine import Index, machine
from torchmod.verify.simulated.tags import device_at, index_of, type_name

aten = torch.ops.aten
Operand = tuple[int | str, Tensor, Index]
"""The argument that it is or is in, by position or name; the tensor; its device."""

COPIES = {
    aten._has_compatible_shallow_copy_type.default,
    aten.copy_.default,
    aten.copy.default,
    aten._copy_from.default,
    aten._foreach_copy_.default,
}
"""Operators that take from any device."""
INDEXING = {
    aten.index.Tensor,
    aten._unsafe_index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
    aten._unsafe_index_put.default,
}
LIKE = {
    aten.zeros_like.default,
    aten.ones_like.default,
    aten.empty_like.default,
    aten.full_like.default,
    aten.rand_like.default,
    aten.randn_like.default,
    aten.randint_like.default,
    aten.randint_like.low_dtype,
    aten.new_zeros.default,
    aten.new_ones.default,
    aten.new_empty.default,
    aten.new_full.default,
    aten.new_empty_strided.default,
}
"""Operators that make a tensor after the image of another, on its device if no other is named."""
HOST_ARGUMENTS = {
    **{operator: {1} for operator in INDEXING},
    aten._pack_padded_sequence.default: {1},
}
"""Arguments that may be on the CPU while the others are on a device."""
HOST_RESULTS = {aten._pack_padded_sequence.default: {1}}
"""Results that are on the CPU in any case."""
CONVOLUTIONS = {aten.convolution.default, aten.convolution_overrideable.default}


@dataclass(frozen=True, slots=True)
class Rule:
    """What matters of an operator."""

    written: frozenset[int | str]
    """The arguments that it changes."""
    host: frozenset[int | str]
    host_results: frozenset[int]
    draws: bool
    """Whether it draws random numbers."""


@cache
def rule_of(operator: OpOverload) -> Rule:
    written: set[int | str] = set()
    for place, argument in enumerate(operator._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            written |= {place, argument.name}
    return Rule(
        frozenset(written),
        frozenset(HOST_ARGUMENTS.get(operator, ())),
        frozenset(HOST_RESULTS.get(operator, ())),
        torch.Tag.nondeterministic_seeded in operator.tags,
    )


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors of an argument or a result, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)


def operands_of(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> list[Operand]:
    found: list[Operand] = []
    for places in (enumerate(arguments), keywords.items()):
        for place, value in places:
            found += [(place, tensor, index_of(tensor)) for tensor in tensors_in(value)]
    return found


def place_of(operator: OpOverload, operands: list[Operand], request: torch.device | None, wanted: Index) -> Index:
    """Where the result belongs; raises what torch raises when the operands are not together.

    ``request`` is the device that the operator was told, and ``wanted`` the simulated one that it stands for. What C++
    tells is always the CPU, where it believes to be: the operands, or else the surrounding call, say where that is.
    """
    if operator in COPIES:
        return operands[0][2]
    common = common_device(operator, operands)
    if wanted is not None:
        return wanted
    if operator in LIKE and request is not None and machine.local.device_given:
        return None
    if operands:
        return common
    return machine.local.ambient if machine.local.in_call else machine.default


def common_device(operator: OpOverload, operands: list[Operand]) -> Index:
    """The device of the operands. CPU tensors without dimensions, and some others, may join those on a device."""
    rule = rule_of(operator)
    first: Operand | None = None
    for operand in operands:
        if may_join(rule, operand):
            continue
        if first is None:
            first = operand
        elif operand[2] != first[2]:
            if not in_backward():
                raise RuntimeError(disagreement(operator, first, operand))
            if first[2] is None:  # zeros that the engine made belong where they are used
                first = operand
    if operator is aten._pack_padded_sequence.default and operands[1][2] is not None:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got 1D {device_at(operands[1][2])} Long tensor"
        )
    return first[2] if first is not None else None


def may_join(rule: Rule, operand: Operand) -> bool:
    """Whether an operand is on the CPU and may be so while others are on a device."""
    place, tensor, index = operand
    return index is None and place not in rule.written and (place in rule.host or not tensor.dim())


def in_backward() -> bool:
    return torch._C._current_graph_task_id() != -1


def disagreement(operator: OpOverload, first: Operand, second: Operand) -> str:
    """The message of torch for two operands on different devices."""
    if operator in CONVOLUTIONS:
        names = type_name(first[1]), type_name(second[1])
        return f"Input type ({names[0]}) and weight type ({names[1]}) should be the same"
    if operator in INDEXING and second[0] == 1:
        here = device_at(first[2])
        return f"indices should be either on {here} or on the same device as the indexed tensor ({here})"
    here, there = device_at(first[2]), device_at(second[2])
    return f"Expected all tensors to be on the same device, but found at least two devices, {here} and {there}!"
