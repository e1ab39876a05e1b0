"""Which files can hold anything for the chosen transforms, decided on bytes before anything heavy is imported."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_MARK = b"torchmod:"  # a suppression, which may be an unused one


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
        self._groups: list[tuple[tuple[bytes, ...], re.Pattern[bytes] | None]] = []
        by_anchor: dict[tuple[str, ...], set[str]] = {}
        for row in rows:
            if not row.documents:
                by_anchor.setdefault(row.anchors, set()).update(row.words or ("",))
        for anchors, words in by_anchor.items():
            pattern = None if "" in words else re.compile(b"|".join(re.escape(w.encode()) for w in sorted(words)))
            self._groups.append((tuple(a.encode() for a in anchors), pattern))

    def wants(self, data: bytes) -> bool:
        """Whether a Python file has to be parsed."""
        for anchors, words in self._groups:
            if (not anchors or any(a in data for a in anchors)) and (words is None or words.search(data)):
                return True
        return _MARK in data
