"""Which files can hold anything for the chosen transforms, decided on bytes before anything heavy is imported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

_MARK = b"torchmod:"  # a suppression, which may be an unused one
_BETWEEN_IDENTIFIERS = bytes(byte if bytes([byte]).isalnum() or byte == ord("_") else 32 for byte in range(256))
"""A translation that leaves a blank for everything that is not in an ASCII identifier."""


class Row(NamedTuple):
    """What the index knows of a transform."""

    tags: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    on_project: bool = False


class Prefilter:
    """Tells from a file's bytes whether a transform could have something to say: an anchor and one of its words."""

    def __init__(self, rows: Iterable[Row]) -> None:
        by_anchor: dict[tuple[str, ...], set[str]] = {}
        always: set[tuple[str, ...]] = set()
        for row in rows:
            if not row.documents:
                by_anchor.setdefault(row.anchors, set()).update(row.words)
                always.update([row.anchors] * (not row.words))
        self._groups = [
            (tuple(a.encode() for a in anchors), None if anchors in always else frozenset(w.encode() for w in words))
            for anchors, words in by_anchor.items()
        ]

    def wants(self, data: bytes) -> bool:
        """Whether a Python file has to be parsed. Words are whole identifiers: what stands in no file is in no tree."""
        for anchors, words in self._groups:
            if anchors and not any(anchor in data for anchor in anchors):
                continue
            if words is None or not words.isdisjoint(data.translate(_BETWEEN_IDENTIFIERS).split()):
                return True
        return _MARK in data
