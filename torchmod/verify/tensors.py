"""The tensors in a value, and what is asked of a tensor: its values on the CPU, the graph that it keeps alive."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from typing import Any

import torch


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a value, in order, through lists, tuples and dictionaries; each of these is looked into once."""
    seen: set[int] = set()
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, torch.Tensor):
            yield one
        elif isinstance(one, dict | list | tuple) and id(one) not in seen:
            seen.add(id(one))
            todo += reversed(list(one.values()) if isinstance(one, dict) else one)


def on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of the values, dense and on the CPU."""
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    return tensor.resolve_conj().resolve_neg().cpu().clone(memory_format=torch.contiguous_format)


def content(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor that `on_cpu` gave."""
    return ctypes.string_at(tensor.data_ptr(), tensor.nbytes) if tensor.nbytes else b""


def graph_nodes(tensors: Iterable[torch.Tensor]) -> int:
    """How many nodes of the autograd graph some tensors keep alive."""
    seen: set[Any] = set()
    todo: list[Any] = [tensor.grad_fn for tensor in tensors]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo += [following for following, _ in node.next_functions]
    return len(seen)
