"""Values as plain data: what can be seen of a tensor, a module, an optimizer, a container, any other object.

A snapshot is a dictionary with a ``kind``: plain, tensor, array, module, optimizer, items, object, code, cut (the value
is one of those that hold it), digest (many values at once), file, missing, unseen (nothing was looked at).
"""

from __future__ import annotations

import collections
import re
import types
import weakref
from collections.abc import Iterable
from typing import Any

import torch

from torchmod.verify.attributes import (
    CODE,
    attributes,
    code_facts,
    code_holds,
    hidden,
    is_own,
    key_name,
    own_value,
    pickles,
    unique,
    unseen,
)
from torchmod.verify.digests import Digest, digest
from torchmod.verify.tensors import graph_nodes, on_cpu
from torchmod.verify.trace import Snapshot

MISSING: Snapshot = {"kind": "missing"}
_MOST_SINGLE, _MOST_LOOKED_AT = 20_000, 200_000
"""So many values are kept one by one, for each name; what follows goes into digests. Then only numbers and texts do."""
_MOST_DEPTH, _MOST_TEXT = 100, 20_000
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}")
_VIEWS: tuple[type, ...] = (types.MappingProxyType, type({}.keys()), type({}.values()), type({}.items()))
_CONTAINERS = (dict, list, tuple, set, frozenset, collections.deque)
_PLAIN: tuple[type, ...] = (type(None), bool, int, float, complex, str, bytes)
_OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))
_OF_EVERY_OPTIMIZER = frozenset({"defaults", "state", "param_groups"})


class Snapshots:
    """Takes snapshots. ``scratch`` is the folder whose name differs from run to run."""

    def __init__(self, scratch: str) -> None:
        self.scratch = scratch
        self.looked_at = 0
        self.named: dict[int, str] = {}
        """The tensors that a module has listed by name, by id."""

    def of(self, value: Any) -> Snapshot:
        """One value and all that it holds."""
        self.looked_at, self.named = 0, {}
        return self._of(value, ())

    def _of(self, value: Any, above: tuple[int, ...]) -> Snapshot:
        """One value; ``above`` are the ids of the values that hold it."""
        self.looked_at += 1
        if type(value) in _PLAIN:
            return self._plain(value)
        if id(value) in above:
            return {"kind": "cut", "up": len(above) - above.index(id(value))}
        if len(above) > _MOST_DEPTH or self.looked_at > _MOST_LOOKED_AT:
            return unseen(value, "it lies too deep" if len(above) > _MOST_DEPTH else "there is too much of it")
        try:
            return self._kind_of(value, (*above, id(value)))
        except Exception as error:  # code of its own that fails is no failure of ours
            return unseen(value, f"unreadable: {type(error).__name__}")

    def _kind_of(self, value: Any, above: tuple[int, ...]) -> Snapshot:
        if isinstance(value, torch.Tensor):
            return self._tensor(value, above)
        if isinstance(value, _PLAIN) and not is_own(type(value)):
            return self._plain(value)
        if isinstance(value, torch.device | torch.dtype | torch.Size):
            return {"kind": "plain", "type": type(value).__name__, "value": str(value)}
        if isinstance(value, bytearray | memoryview):
            return {"kind": "plain", "type": type(value).__name__, "value": self._plain(bytes(value))["value"]}
        if type(value).__module__ == "numpy" and hasattr(value, "dtype"):
            return self._numpy(value, above)
        if isinstance(value, torch.nn.Module):
            return self._module(value, above)
        if isinstance(value, torch.optim.Optimizer):
            return self._optimizer(value, above)
        if isinstance(value, _CONTAINERS + _VIEWS):
            return self._container(value, above)
        if isinstance(value, CODE):
            return self._code(value, above)
        return self._object(value, above)

    def text(self, text: str) -> str:
        """A text without what differs from run to run, and without half characters."""
        text = text.encode("utf-8", "backslashreplace").decode("utf-8").replace(self.scratch, "<scratch>")
        return _ADDRESS.sub("0x…", text)

    def short_text(self, text: str, most: int = _MOST_TEXT) -> str:
        """The same; of a long one the beginning, and a digest of all of it."""
        text = self.text(text)
        return text if len(text) <= most else f"{text[:most]}… {digest(text.encode())}"

    def _tensor(self, value: torch.Tensor, above: tuple[int, ...]) -> Snapshot:
        if id(value) in self.named:
            return {"kind": "plain", "type": "tensor of the module", "value": self.named[id(value)]}
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
            "grad": self._of(value.grad, above) if value.is_leaf and value.grad is not None else MISSING,
        }

    def _plain(self, value: Any) -> Snapshot:
        kind = next(one for one in (bool, int, float, complex, str, bytes, object) if isinstance(value, one))
        if kind is complex or (kind is int and abs(value) >= 1 << 63):
            value = str(value)
        elif kind is bytes:
            value = {"length": len(value), "digest": digest(value)}
        elif kind is str:
            value = self.short_text(value)
        return {"kind": "plain", "type": "NoneType" if value is None else kind.__name__, "value": value}

    def _numpy(self, value: Any, above: tuple[int, ...]) -> Snapshot:
        import numpy as np

        array = np.asarray(value)
        kind = "array" if isinstance(value, np.ndarray) else "plain"
        if kind == "plain" and array.dtype.kind in "fiub":
            return {"kind": "plain", "type": type(value).__name__, "value": value.item()}
        try:
            held: Any = torch.from_numpy(np.ascontiguousarray(array).copy()).reshape(array.shape)
        except TypeError:  # strings, objects, structures
            held = self._of(array.tolist(), above)
        return {"kind": "array", "shape": list(array.shape), "dtype": str(array.dtype), "value": held}

    def _module(self, module: torch.nn.Module, above: tuple[int, ...]) -> Snapshot:
        parts = list(module.named_modules())
        tensors = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
        listed = {name: self._of(tensor, above) for name, tensor in tensors}
        before, self.named = self.named, self.named | {id(tensor): name for name, tensor in tensors}
        held = {f"{path}.{name}".lstrip("."): one for path, part in parts for name, one in _held_by(part).items()}
        found = self._named(held.items(), above)
        self.named = before
        return {
            "kind": "module",
            "type": type(module).__name__,
            "parts": {path: type(part).__name__ for path, part in parts},
            "training": {path: part.training for path, part in parts},
            "keys": list(module.state_dict()),
            "attributes": found,
            "tensors": listed,
        }

    def _optimizer(self, value: torch.optim.Optimizer, above: tuple[int, ...]) -> Snapshot:
        own = is_own(type(value))
        held = {
            name: one
            for name, one in attributes(value).items()
            if name not in _OF_EVERY_OPTIMIZER and isinstance(one, _PLAIN) and (own or not name.startswith("_"))
        }
        state = self._of(value.state_dict(), above)
        name = type(value).__name__
        return {"kind": "optimizer", "type": name, "state": state, "attributes": self._named(held.items(), above)}

    def _container(self, value: Any, above: tuple[int, ...]) -> Snapshot:
        pairs: Iterable[tuple[str, Any]]
        if isinstance(value, dict | types.MappingProxyType):
            pairs = unique((self.text(key_name(key)), one) for key, one in value.items())
        elif isinstance(value, set | frozenset):
            pairs = [(str(index), one) for index, one in enumerate(sorted(value, key=lambda one: self.text(repr(one))))]
        else:
            pairs = [(str(index), one) for index, one in enumerate(value)]
        held = {} if type(value) in _CONTAINERS else attributes(value)
        if isinstance(value, collections.deque):
            held["maxlen"] = value.maxlen
        return {
            "kind": "items",
            "type": type(value).__name__,
            "length": len(value),
            "items": self._named(pairs, above),
            "attributes": self._named(held.items(), above),
        }

    def _code(self, value: Any, above: tuple[int, ...]) -> Snapshot:
        """A function, a class, a module: its name, and the data that it carries with it."""
        name, meaning = code_facts(value)
        return {
            "kind": "code",
            "type": type(value).__name__,
            "name": self.text(name),
            "digest": digest(self.text(meaning).encode()),
            "attributes": self._named(code_holds(value).items(), above),
        }

    def _object(self, value: Any, above: tuple[int, ...]) -> Snapshot:
        """Anything else: what it holds; of a dataset also its length, and whether workers could be sent it."""
        snapshot: Snapshot = {"kind": "object", "type": type(value).__name__, "attributes": {}}
        is_dataset, is_h5py = isinstance(value, torch.utils.data.Dataset), type(value).__module__.startswith("h5py.")
        if is_dataset or is_h5py:
            snapshot["pickles"] = pickles(value)
        if is_dataset and hasattr(value, "__len__"):
            snapshot["length"] = len(value)
        held: dict[str, Any]
        beside: dict[str, Any] | None
        if is_h5py:  # its attributes are numbers of open handles
            held, beside = {}, {"text": repr(value)}
        elif isinstance(value, weakref.ReferenceType):
            held, beside = {"target": value()}, {}
        else:
            held = attributes(value)
            beside = {"value": own_value(value)} if isinstance(value, _PLAIN) else hidden(value, held)
        if beside is None:
            snapshot["unseen"] = "what else it holds cannot be looked at"
        named = [*held.items(), *((f"<{name}>", one) for name, one in (beside or {}).items())]
        snapshot["attributes"] = self._named(named, above)
        return snapshot

    def _named(self, pairs: Iterable[tuple[str, Any]], above: tuple[int, ...]) -> dict[str, Snapshot]:
        """Snapshots by name; of those beyond the most that are kept one by one, one digest."""
        kept: dict[str, Snapshot] = {}
        rest = Digest()
        for name, one in pairs:
            if self.looked_at < _MOST_SINGLE:
                kept[name] = self._of(one, above)
            elif type(one) in _PLAIN:
                rest.add(f"{name} {self.text(repr(one)) if isinstance(one, str) else repr(one)}")
            else:
                rest.add({name: self._of(one, above)})
        return {**kept, "<the rest>": rest.snapshot()} if rest.count else kept


def _held_by(part: torch.nn.Module) -> dict[str, Any]:
    """The attributes of a module that are not tensors or modules of its own, and its hooks."""
    held = attributes(part)
    hooks = {name: list(held[name].values()) for name in _OF_EVERY_MODULE if name.endswith("_hooks") and held.get(name)}
    return {**{name: one for name, one in held.items() if name not in _OF_EVERY_MODULE}, **hooks}
