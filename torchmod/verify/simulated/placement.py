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
from torchmod.verify.simulated.operators import (
    CONVOLUTIONS,
    COPIES,
    FLOATING_KERNELS,
    HOST_ARGUMENTS,
    HOST_RESULTS,
    INDEXING,
    LIKE,
    NUMBERS,
    base_name,
    scalar_arguments,
)
from torchmod.verify.simulated.tags import LEGACY_NAMES, device_at, index_of, is_unplaced, type_name

aten = torch.ops.aten
Operand = tuple[int | str, Tensor, Index]
"""The argument that it is or is in, by position or name; the tensor; its device."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What matters of an operator."""

    written: frozenset[int | str]
    """The arguments that it changes."""
    host: frozenset[int | str]
    """The arguments that may be on the CPU."""
    scalars: frozenset[int | str]
    """The arguments that may be there when they have no dimensions."""
    numbers: frozenset[int | str]
    """The arguments that may be anywhere when they have none."""
    host_results: frozenset[int]
    draws: bool
    """Whether it draws random numbers."""
    kernel: str
    """The name of CUDA's kernel, where there is none for integers."""


@cache
def rule_of(operator: OpOverload) -> Rule:
    arguments = operator._schema.arguments
    written = {place for place, one in enumerate(arguments) if one.alias_info is not None and one.alias_info.is_write}

    def named(places: set[int]) -> frozenset[int | str]:
        return frozenset(places) | {arguments[place].name for place in places if place < len(arguments)}

    name = base_name(operator)
    return Rule(
        named(written),
        named(HOST_ARGUMENTS.get(operator, set())),
        named(scalar_arguments(operator)),
        named(NUMBERS.get(name, set())),
        frozenset(HOST_RESULTS.get(operator, ())),
        torch.Tag.nondeterministic_seeded in operator.tags,
        FLOATING_KERNELS.get(name, ""),
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
        return first_device(operands)
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
            raise RuntimeError(disagreement(operator, first, operand))
    if operator is aten._pack_padded_sequence.default and operands[1][2] is not None:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got 1D {device_at(operands[1][2])} Long tensor"
        )
    if first is None:  # all may join others, and there are none to join
        return first_device(operands) if operands else None
    if rule.kernel and first[2] is not None:
        refuse_integers(rule.kernel, first[1].dtype)
    return first[2]


def first_device(operands: list[Operand]) -> Index:
    """The device of the first operand that has its place."""
    return next((index for _, tensor, index in operands if not is_unplaced(tensor)), operands[0][2])


def may_join(rule: Rule, operand: Operand) -> bool:
    """Whether an operand may be elsewhere than the others are."""
    place, tensor, index = operand
    if is_unplaced(tensor):
        return True
    if place in rule.written:
        return False
    if not tensor.dim() and (place in rule.numbers or (index is None and place in rule.scalars)):
        return True
    return index is None and place in rule.host


def refuse_integers(kernel: str, dtype: torch.dtype) -> None:
    if not dtype.is_floating_point and not dtype.is_complex:
        raise NotImplementedError(f""""{kernel}" not implemented for '{LEGACY_NAMES.get(dtype, str(dtype))}'""")


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
