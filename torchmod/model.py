"""What the parts of torchmod hand to each other: spans, edits, fixes, findings, outcomes.

Offsets count Unicode code points of a file's text as it was read, without its BOM; ``\\r\\n`` counts as two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from torchmod.basics import UNUSED_SUPPRESSION, Applicability, Status, TorchmodError

__all__ = [
    "UNUSED_SUPPRESSION",
    "Applicability",
    "Edit",
    "Finding",
    "Fix",
    "Need",
    "Outcome",
    "Place",
    "Refused",
    "Span",
    "Status",
    "TorchmodError",
    "Unreadable",
    "Wrapper",
]


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The text from offset ``start`` up to, not including, ``end``."""

    start: int
    end: int

    def __contains__(self, other: Span) -> bool:
        return self.start <= other.start and other.end <= self.end


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the text of a span; an insertion when ``start == end``. ``path`` only where it is another file's."""

    start: int
    end: int
    text: str
    path: str | None = None

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Need:
    """A statement that a fix relies on, such as ``import torch``: written once, and only if such a fix is accepted."""

    code: str
    before: int | None = None
    """Offset that the statement must stand before (the first use at module level)."""
    is_import: bool = True


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A region that a fix puts under a new header, such as ``with torch.no_grad():``."""

    header: str
    region: Span


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that are applied together or not at all."""

    edits: tuple[Edit, ...]
    needs: tuple[Need, ...] = ()
    wrappers: tuple[Wrapper, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: 1-based lines and columns, columns in code points."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that a transform has something to say about.

    A transform gives ``build`` (the fix is made only when somebody wants it); the engine fills in ``fix``,
    ``place`` and ``fixed``.
    """

    transform: str
    applicability: Applicability
    message: str
    span: Span
    evidence: tuple[str, ...] = ()
    build: Callable[[], Fix] | None = field(default=None, compare=False, repr=False)
    path: str = ""
    place: Place | None = None
    fix: Fix | None = None
    fixed: bool = False

    def as_note(self, reason: str) -> Finding:
        """The same place, left alone for a reason."""
        return replace(self, applicability=Applicability.NOTE, message=reason, build=None, fix=None)


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that is known of one file after a run. ``new`` is None when nothing would change."""

    path: str
    status: Status = Status.OK
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    old: bytes | None = None
    new: bytes | None = None
    edits: tuple[Edit, ...] = ()
    """What makes the new text from the old one."""
    transactions: tuple[int, ...] = ()
    """The fixes over several files that this file takes part in, by number."""


class Unreadable(Exception):
    """A file that cannot be decoded or parsed; the message says where and what to do."""


class Refused(Exception):
    """A rewrite that cannot be made for this piece of source; the message is the reason a note gives."""
