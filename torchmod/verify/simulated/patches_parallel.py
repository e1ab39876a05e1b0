"""Several devices at once: the collectives of ``DataParallel``, and sorting tensors by device for optimizers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torchmod.verify.simulated.moves import move
from torchmod.verify.simulated.patching import replace
from torchmod.verify.simulated.tags import index_of

_group = torch._C._group_tensors_by_device_and_dtype


def install() -> None:
    replace(
        torch._C,
        _broadcast=lambda tensor, devices: tuple(copies(tensor, devices)),
        _broadcast_coalesced=broadcast_coalesced,
        _scatter=scatter,
        _gather=gather,
        _group_tensors_by_device_and_dtype=group_by_device,
    )


def copies(tensor: Tensor, devices: Sequence[int]) -> list[Tensor]:
    return [move(tensor, index) for index in devices]


def broadcast_coalesced(tensors: Sequence[Tensor], devices: Sequence[int], size: int) -> list[list[Tensor]]:
    return [[move(tensor, index) for tensor in tensors] for index in devices]


def scatter(
    tensor: Tensor, devices: Sequence[int], sizes: Sequence[int] | None, dim: int, streams: Any = None
) -> tuple[Tensor, ...]:
    parts = tensor.chunk(len(devices), dim) if sizes is None else tensor.split(list(sizes), dim)
    return tuple(move(part, index) for part, index in zip(parts, devices, strict=False))


def gather(tensors: Sequence[Tensor], dim: int, destination: int | None) -> Tensor:
    index = index_of(tensors[0]) if destination is None else None if destination < 0 else destination
    return torch.cat([move(tensor, index) for tensor in tensors], dim)


Lists = list[list[Tensor | None]]


def group_by_device(lists: Lists, with_indices: bool = False) -> dict[Any, tuple[Lists, list[int]]]:
    """The lists of an optimizer, by device and dtype: C++ sorts by dtype, and sees one device only."""
    rows: dict[Any, list[int]] = {}
    for row, tensor in enumerate(lists[0]):
        assert tensor is not None, "the first list has no gaps"
        rows.setdefault((tensor.device, tensor.dtype), []).append(row)
    return {
        key: ([[column[row] for row in chosen] if column else [] for column in lists], chosen if with_indices else [])
        for key, chosen in rows.items()
    }
