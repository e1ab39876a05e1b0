"""In what two snapshots differ: the walk over tensors, modules and containers, with the tolerances.

A path names a value: ``loss``, ``out.2.grad``, ``model.0.weight``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from torchmod.verify.trace import Snapshot

_TOLERANCE = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
"""Relative and absolute, as in `torch.testing.assert_close`; all other types are compared exactly."""
_RELATIVE, _ABSOLUTE = 1e-5, 1e-8
"""For Python's own floats."""
_LONGEST = 120
UNSEEN = "not compared"
"""The aspect of what nobody looked at: no difference, and no sameness either."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it was."""

    path: str
    aspect: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}: {self.aspect} was {self.before}, is {self.after}"


def unequal(path: str, aspect: str, before: object, after: object) -> Iterator[Difference]:
    """The difference between two facts, if there is one."""
    if before != after:
        yield Difference(path, aspect, short(before), short(after))


def children(path: str, before: Mapping[str, Snapshot], after: Mapping[str, Snapshot]) -> Iterator[Difference]:
    """The differences below a path, by name."""
    for name in _names(before, after):
        below = f"{path}.{name}" if path else name
        if name in before and name in after:
            yield from values(below, before[name], after[name])
        else:
            yield Difference(below, "presence", *("present" if name in side else "absent" for side in (before, after)))


def entries(path: str, aspect: str, before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[Difference]:
    """The differences between plain facts that have names."""
    for name in _names(before, after):
        below = f"{path}.{name}" if path and name else path or name
        yield from unequal(below, aspect, before.get(name, "absent"), after.get(name, "absent"))


def values(path: str, before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    """In what two snapshots differ."""
    kinds = before["kind"], after["kind"]
    if "missing" in kinds:
        yield from unequal(path, "presence", *("absent" if kind == "missing" else "present" for kind in kinds))
    elif "unseen" in kinds:
        yield from _unseen(path, before, after)
    elif kinds[0] != kinds[1] or (kinds[0] == "plain" and before["type"] != after["type"]):
        yield Difference(path, "type", _description(before), _description(after))
        numbers = [number for side in (before, after) if (number := _number(side)) is not None]
        if len(numbers) == 2 and not _close(*numbers):
            yield Difference(path, "value", *(f"{number:.9g}" for number in numbers))
    else:
        yield from _WALKS[kinds[0]](path, before, after)


def _plain(path: str, before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    one, other = before["value"], after["value"]
    if not isinstance(one, float) or not isinstance(other, float):
        yield from unequal(path, "value", one, other)
    elif not _close(one, other):
        yield Difference(path, "value", f"{one:.9g}", f"{other:.9g}")


def _tensor(path: str, before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    for fact in ("shape", "dtype", "device", "layout", "requires_grad", "leaf", "parameter"):
        yield from unequal(path, fact, before[fact], after[fact])
    yield from unequal(path, "graph", *("kept" if side["nodes"] else "none" for side in (before, after)))
    yield from _contents(path, before["value"], after["value"])
    yield from values(f"{path}.grad", before["grad"], after["grad"])


def _array(path: str, before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    for fact in ("shape", "dtype"):
        yield from unequal(path, fact, before[fact], after[fact])
    if isinstance(before["value"], dict) and isinstance(after["value"], dict):
        yield from values(path, before["value"], after["value"])
    else:
        yield from _contents(path, before["value"], after["value"])


def _contents(path: str, before: Any, after: Any) -> Iterator[Difference]:
    """The first element that differs. Of other shapes only single elements can be compared."""
    if not isinstance(before, torch.Tensor) or not isinstance(after, torch.Tensor):
        yield from unequal(path, "value", before, after)
        return
    if before.shape != after.shape and not before.numel() == after.numel() == 1:
        return
    one, other = before.reshape(-1), after.reshape(-1)
    relative, absolute = max(_TOLERANCE.get(side.dtype, (0.0, 0.0)) for side in (one, other))
    if one.dtype != other.dtype:
        wide = torch.complex128 if one.is_complex() or other.is_complex() else torch.float64
        one, other = one.to(wide), other.to(wide)
    same = torch.isclose(other, one, rtol=relative, atol=absolute, equal_nan=True)
    if not same.all():
        first = int((~same).nonzero()[0, 0])
        where = f" (element {first} of {one.numel()})" if one.numel() > 1 else ""
        yield Difference(path, "value", *(f"{_digits(side[first].item())}{where}" for side in (one, other)))


def _module(path: str, before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    yield from unequal(path, "keys", before["keys"], after["keys"])
    yield from entries(path, "type", before["parts"], after["parts"])
    yield from entries(path, "training", before["training"], after["training"])
    yield from children(path, before["attributes"], after["attributes"])
    yield from children(path, before["tensors"], after["tensors"])


def _items(path: str, before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    yield from unequal(path, "type", before["type"], after["type"])
    yield from unequal(path, "length", before["length"], after["length"])
    yield from children(path, before["items"], after["items"])
    yield from children(path, before["attributes"], after["attributes"])


def _object(path: str, before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    for fact in ("type", "pickles", "length"):
        yield from unequal(path, fact, before.get(fact), after.get(fact))
    yield from children(path, before["attributes"], after["attributes"])
    if before["type"] == after["type"] and (before.get("unseen") or after.get("unseen")):
        yield from _unseen(path, before, after)


def _code(path: str, before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    """Code that was rewritten may do the same or not: what it does is seen in what it makes."""
    for fact in ("type", "name"):
        yield from unequal(path, fact, before[fact], after[fact])
    yield from children(path, before["attributes"], after["attributes"])
    if before["name"] == after["name"] and before["digest"] != after["digest"]:
        yield Difference(path, UNSEEN, *("a function with code of its own",) * 2)


def _optimizer(path: str, before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    yield from unequal(path, "type", before["type"], after["type"])
    yield from values(path, before["state"], after["state"])
    yield from children(path, before["attributes"], after["attributes"])


def _file(path: str, before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    if "held" in before and "held" in after:
        yield from values(path, before["held"], after["held"])
    elif before != after:
        yield Difference(path, "content", *(short(side.get("text", "a checkpoint")) for side in (before, after)))


def _cut(path: str, before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    """Both are among the values that hold them, but maybe not the same ones."""
    yield from unequal(path, "value", *(f"what holds it, {side['up']} up" for side in (before, after)))


def _digest(path: str, before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    for fact in ("length", "value"):
        yield from unequal(path, fact, before[fact], after[fact])
    if before["unseen"] or after["unseen"]:
        yield Difference(path, UNSEEN, before["unseen"], after["unseen"])


def _unseen(path: str, before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    yield from unequal(path, "type", *map(_description, (before, after)))
    if _description(before) == _description(after):
        yield Difference(path, UNSEEN, *(_why(side) for side in (before, after)))


def _why(side: Snapshot) -> str:
    why = side.get("why") or side.get("unseen")
    return f"{side.get('type', side['kind'])}{f', {why}' if why else ''}"


_WALKS: dict[str, Callable[[str, Snapshot, Snapshot], Iterator[Difference]]] = {
    "plain": _plain,
    "tensor": _tensor,
    "array": _array,
    "module": _module,
    "optimizer": _optimizer,
    "items": _items,
    "object": _object,
    "code": _code,
    "file": _file,
    "cut": _cut,
    "digest": _digest,
}


def _names(before: Iterable[str], after: Iterable[str]) -> list[str]:
    """All names, in the order of the first side."""
    return list(dict.fromkeys([*before, *after]))


def _description(snapshot: Snapshot) -> str:
    if snapshot["kind"] == "tensor":
        return f"tensor({', '.join(map(str, snapshot['shape']))})"
    return str(snapshot.get("type", snapshot["kind"]))


def _number(snapshot: Snapshot) -> float | None:
    """The value of a number, or of a tensor of one element."""
    value = snapshot.get("value")
    if isinstance(value, torch.Tensor):
        return float(value.item()) if value.numel() == 1 and not value.is_complex() else None
    return float(value) if isinstance(value, bool | int | float) else None


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE) or (math.isnan(one) and math.isnan(other))


def _digits(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def short(value: object) -> str:
    """A value on one short line."""
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
