"""Values as plain data: what can be seen of a tensor, a module, an optimizer, a container, a file.

A snapshot is a dictionary with a ``kind``: plain, tensor, array, module, optimizer, items, object, file, missing, cut.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from torchmod.verify.trace import Snapshot

MISSING: Snapshot = {"kind": "missing"}
_MOST_ITEMS, _MOST_DEPTH, _MOST_TEXT = 500, 8, 20_000
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}")


class Snapshots:
    """Takes snapshots. ``scratch`` is the folder whose name differs from run to run."""

    def __init__(self, scratch: str) -> None:
        self.scratch = scratch

    def safely(self, value: Any) -> Snapshot:
        """One value; code of its own that fails is no failure of ours."""
        try:
            return self.of(value)
        except Exception as error:
            what = f"unreadable: {type(error).__name__}"
            return {"kind": "object", "type": f"{type(value).__name__} ({what})", "attributes": {}}

    def of(self, value: Any, above: tuple[int, ...] = ()) -> Snapshot:
        """One value and what it holds; ``above`` are the ids of the values that hold it."""
        if id(value) in above or len(above) > _MOST_DEPTH:
            return {"kind": "cut"}
        above = (*above, id(value))
        if isinstance(value, torch.Tensor):
            return self._tensor(value, above)
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            return self._plain(value)
        if isinstance(value, torch.device | torch.dtype | torch.Size):
            return {"kind": "plain", "type": type(value).__name__, "value": str(value)}
        if type(value).__module__ == "numpy":
            return self._numpy(value)
        if isinstance(value, torch.nn.Module):
            return self._module(value, above)
        if isinstance(value, torch.optim.Optimizer):
            return {"kind": "optimizer", "type": type(value).__name__, "state": self.of(value.state_dict(), above)}
        if isinstance(value, dict | list | tuple | set | frozenset):
            return self._items(value, above)
        return self._object(value, above)

    def text(self, text: str) -> str:
        """A text without what differs from run to run, and without half characters."""
        text = text.encode("utf-8", "backslashreplace").decode("utf-8").replace(self.scratch, "<scratch>")
        return _ADDRESS.sub("0x…", text)

    def _tensor(self, value: torch.Tensor, above: tuple[int, ...]) -> Snapshot:
        return {
            "kind": "tensor",
            "shape": list(value.shape),
            "dtype": str(value.dtype),
            "device": str(value.device),
            "layout": str(value.layout),
            "requires_grad": value.requires_grad,
            "leaf": value.is_leaf,
            "parameter": isinstance(value, torch.nn.Parameter),
            "nodes": graph_nodes([value]),
            "value": None if value.is_meta else on_cpu(value),
            "grad": self.of(value.grad, above) if value.is_leaf and value.grad is not None else MISSING,
        }

    def _plain(self, value: Any) -> Snapshot:
        kind = next(one for one in (bool, int, float, complex, str, bytes, object) if isinstance(value, one))
        if kind is complex or (kind is int and abs(value) >= 1 << 63):
            value = str(value)
        elif kind is bytes:
            value = {"length": len(value), "digest": digest(value)}
        elif kind is str:
            value = self.text(value)
            value = value if len(value) <= _MOST_TEXT else f"{value[:_MOST_TEXT]} {digest(value.encode())}"
        return {"kind": "plain", "type": "NoneType" if value is None else kind.__name__, "value": value}

    def _numpy(self, value: Any) -> Snapshot:
        import numpy as np

        array = np.asarray(value)
        kind = "array" if isinstance(value, np.ndarray) else "plain"
        if kind == "plain" and array.dtype.kind in "fiub":
            return {"kind": "plain", "type": type(value).__name__, "value": value.item()}
        try:
            content: Any = torch.from_numpy(np.ascontiguousarray(array).copy()).reshape(array.shape)
        except TypeError:  # strings, objects, structures
            content = self.text(repr(array))
        return {"kind": "array", "shape": list(array.shape), "dtype": str(array.dtype), "value": content}

    def _module(self, module: torch.nn.Module, above: tuple[int, ...]) -> Snapshot:
        parts = list(module.named_modules())
        tensors = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
        attributes = {
            f"{path}.{name}".lstrip("."): self._plain(value)
            for path, part in parts
            for name, value in vars(part).items()
            if not name.startswith("_") and name != "training" and isinstance(value, bool | int | float | str | None)
        }
        return {
            "kind": "module",
            "type": type(module).__name__,
            "parts": {path: type(part).__name__ for path, part in parts},
            "training": {path: part.training for path, part in parts},
            "keys": list(module.state_dict()),
            "attributes": attributes,
            "tensors": {name: self.of(tensor, above) for name, tensor in tensors},
        }

    def _items(self, value: Any, above: tuple[int, ...]) -> Snapshot:
        if isinstance(value, dict):
            pairs = [(key if isinstance(key, str) else repr(key), one) for key, one in value.items()]
        elif isinstance(value, set | frozenset):
            pairs = [(str(index), one) for index, one in enumerate(sorted(value, key=repr))]
        else:
            pairs = [(str(index), one) for index, one in enumerate(value)]
        items = {self.text(key): self.of(one, above) for key, one in pairs[:_MOST_ITEMS]}
        return {"kind": "items", "type": type(value).__name__, "length": len(pairs), "items": items}

    def _object(self, value: Any, above: tuple[int, ...]) -> Snapshot:
        """Anything else: its public attributes; of a dataset its length, and whether workers could be sent it."""
        snapshot: Snapshot = {"kind": "object", "type": type(value).__name__, "attributes": {}}
        if isinstance(value, torch.utils.data.Dataset) or type(value).__module__.partition(".")[0] == "h5py":
            snapshot["pickles"] = _pickles(value)
            if isinstance(value, torch.utils.data.Dataset) and hasattr(value, "__len__"):
                snapshot["length"] = len(value)
        elif not isinstance(value, type) and type(value).__module__ == "__main__":
            held = getattr(value, "__dict__", {})
            public = {name: one for name, one in held.items() if not name.startswith("_")}
            snapshot["attributes"] = self._items(public, above)["items"]
        return snapshot

    def file(self, path: str) -> Snapshot:
        """A checkpoint by what it holds, anything else by its content."""
        with open(path, "rb") as file:
            data = file.read()
        snapshot: Snapshot = {"kind": "file", "length": len(data), "digest": digest(data)}
        try:
            held = torch.load(path, weights_only=True, map_location="cpu")
        except Exception:
            with_text = data[: _MOST_TEXT * 2]
            return {**snapshot, "text": self.text(with_text.decode("utf-8", "backslashreplace")[:_MOST_TEXT])}
        return {"kind": "file", "held": self.of(held)}


def on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of the values, dense and on the CPU."""
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    return tensor.resolve_conj().resolve_neg().cpu().clone(memory_format=torch.contiguous_format)


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


def tensors_in(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """The tensors in a value, through lists, tuples and dictionaries."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < _MOST_DEPTH and isinstance(value, dict):
        for one in value.values():
            yield from tensors_in(one, depth + 1)
    elif depth < _MOST_DEPTH and isinstance(value, list | tuple):
        for one in value:
            yield from tensors_in(one, depth + 1)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def files_below(folder: str) -> dict[str, tuple[int, int]]:
    """The files below a folder, by their path in it, with size and time of the last change."""
    found = {}
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            path = os.path.join(top, name)
            if os.path.isfile(path) and not os.path.islink(path):
                state = os.stat(path)
                found[os.path.relpath(path, folder).replace(os.sep, "/")] = (state.st_size, state.st_mtime_ns)
    return found


def _pickles(value: object) -> str:
    try:
        pickle.dumps(value)
    except Exception as error:
        return type(error).__name__
    return "yes"
