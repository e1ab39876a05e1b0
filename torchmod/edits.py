"""Edits: which go together, applying them, composing those of several passes, mapping positions back.

A `Revision` is a text written as pieces: what was kept of the original, and what was inserted. Composing passes is
cutting those pieces anew, so every position of a later text knows where it came from.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import attrgetter

from torchmod.model import Edit, Span


@dataclass(frozen=True, slots=True)
class Kept:
    """A stretch of the original text."""

    start: int
    end: int


Piece = Kept | str


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made; they must not overlap. Insertions at one point stand in the order given."""
    return Revision.of(len(text)).then(edits).render(text)


def conflict(one: Edit, other: Edit) -> bool:
    """Whether two edits of different fixes exclude each other: they overlap, or merely touch."""
    return one.start <= other.end and other.start <= one.end


def clash(edits: Iterable[Edit], taken: Sequence[Edit]) -> bool:
    """Whether any of ``edits`` conflicts with any of ``taken`` (sorted, not overlapping)."""
    for edit in edits:
        index = bisect_right(taken, edit.end, key=attrgetter("start"))
        # of those that start before its end, the last one reaches furthest
        if index and conflict(edit, taken[index - 1]):
            return True
    return False


def take(edits: Iterable[Edit], taken: list[Edit]) -> None:
    """Add edits to the sorted ones that are ``taken``."""
    for edit in edits:
        insort(taken, edit, key=attrgetter("start", "end"))


@dataclass(frozen=True)
class Revision:
    """A text as pieces of an original of ``length`` code points and insertions; immutable."""

    pieces: tuple[Piece, ...]
    length: int

    @classmethod
    def of(cls, length: int) -> Revision:
        """The original itself."""
        return cls((Kept(0, length),), length)

    def render(self, original: str) -> str:
        """The text that this revision stands for."""
        return "".join(p if isinstance(p, str) else original[p.start : p.end] for p in self.pieces)

    def then(self, edits: Iterable[Edit]) -> Revision:
        """This revision with edits made to *its* text. Raises ValueError when they overlap or leave the text."""
        out: list[Piece] = []
        cutter = _Cutter(self.pieces)
        for edit in sorted(edits, key=lambda e: (e.start, e.end)):
            out += cutter.upto(edit.start)
            if edit.text:
                out.append(edit.text)
            cutter.upto(edit.end)
        out += cutter.rest()
        return Revision(tuple(out), self.length)

    def edits(self) -> tuple[Edit, ...]:
        """The edits that make this revision from the original, sorted, never touching."""
        return tuple(Edit(gap.start, gap.end, text) for gap, text in self._gaps())

    def _gaps(self) -> Iterator[tuple[Span, str]]:
        """Between two kept stretches: what of the original is gone, and what stands there now."""
        at, inserted = 0, ""
        for piece in (*self.pieces, Kept(self.length, self.length)):
            if isinstance(piece, str):
                inserted += piece
            elif piece.start > at or inserted:
                yield Span(at, piece.start), inserted
                at, inserted = piece.end, ""
            else:
                at = piece.end

    def origin(self, span: Span) -> Span:
        """The span of the original that a span of this text came from; inserted text came from its whole gap."""
        start, end = self._origin(span.start, leaning_right=True), self._origin(span.end, leaning_right=False)
        return Span(min(start, end), max(start, end))

    def _origin(self, offset: int, *, leaning_right: bool) -> int:
        """Where one offset came from; between two pieces it belongs to the right or to the left one."""
        starts, gaps = self._index
        at = (bisect_right if leaning_right else bisect_left)(starts, offset) - 1
        if not 0 <= at < len(self.pieces):
            return 0 if at < 0 else self.length
        piece = self.pieces[at]
        if isinstance(piece, Kept):
            return piece.start + offset - starts[at]
        return gaps[at].start if leaning_right else gaps[at].end

    @cached_property
    def _index(self) -> tuple[list[int], list[Span]]:
        """For each piece, where it starts in this text (and the end), and the gap of the original that it stands in."""
        starts = [0, *accumulate(_length(piece) for piece in self.pieces)]
        ends, following = [0], self.length
        for piece in self.pieces:
            ends.append(piece.end if isinstance(piece, Kept) else ends[-1])
        gaps: list[Span] = []
        for piece, end in zip(reversed(self.pieces), reversed(ends[:-1]), strict=True):
            gaps.append(Span(end, following))
            following = piece.start if isinstance(piece, Kept) else following
        return starts, gaps[::-1]


class _Cutter:
    """Cuts a sequence of pieces at positions of the text they stand for, from left to right."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = list(reversed(pieces))
        self._at = 0

    def upto(self, offset: int) -> list[Piece]:
        """The pieces from where we are up to ``offset``."""
        if offset < self._at:
            raise ValueError(f"overlapping edits at offset {offset}")
        out: list[Piece] = []
        while self._at < offset:
            if not self._pieces:
                raise ValueError(f"an edit lies outside the text, at offset {offset}")
            piece = self._pieces.pop()
            length = _length(piece)
            if self._at + length > offset:
                piece, rest = _split(piece, offset - self._at)
                self._pieces.append(rest)
                length = offset - self._at
            out.append(piece)
            self._at += length
        return out

    def rest(self) -> list[Piece]:
        """All that is left."""
        return list(reversed(self._pieces))


def _length(piece: Piece) -> int:
    return len(piece) if isinstance(piece, str) else piece.end - piece.start


def _split(piece: Piece, length: int) -> tuple[Piece, Piece]:
    if isinstance(piece, str):
        return piece[:length], piece[length:]
    middle = piece.start + length
    return Kept(piece.start, middle), Kept(middle, piece.end)
