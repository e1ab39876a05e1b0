"""What a transform is handed, with the verbs that make a finding: a module, a document, a whole project.

A call, the commonest subject, is in `calls`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from torchmod.model import Applicability, Edit, Finding, Fix, Need, Span, Wrapper
from torchmod.names import Names, Neighbours
from torchmod.source import Source

Build = Callable[[], Fix]


@dataclass(frozen=True, slots=True)
class Versions:
    """Two facts about torch's version, as tuples of numbers; None is unknown."""

    target: tuple[int, ...] | None = None
    """The oldest torch that the result must run on; None is the newest known."""
    written_for: tuple[int, ...] | None = None
    """The torch that the code was written for."""


UNKNOWN_VERSIONS = Versions()


class Subject:
    """Something to look at, and the verbs to say what was found."""

    def __init__(self, transform: str, path: str, span: Span) -> None:
        self.transform = transform
        self.path = path
        self.span = span

    def report(self, message: str, *, evidence: Iterable[str] = (), at: Span | None = None) -> Finding:
        """A note: looks like the idiom, is left alone; the message gives the reason."""
        return self._finding(Applicability.NOTE, message, None, evidence, at)

    def by_hand(self, message: str, *, evidence: Iterable[str] = (), at: Span | None = None) -> Finding:
        """Something that today's torch breaks on, and that only a person can change."""
        return self._finding(Applicability.DISPLAY, message, None, evidence, at)

    def safe_fix(
        self, message: str, fix: Build | Fix, *, evidence: Iterable[str] = (), at: Span | None = None
    ) -> Finding:
        """A fix that keeps the meaning for every value the facts allow."""
        return self._finding(Applicability.SAFE, message, fix, evidence, at)

    def unsafe_fix(
        self, message: str, fix: Build | Fix, *, evidence: Iterable[str] = (), at: Span | None = None
    ) -> Finding:
        """A fix that is right in all likelihood, but can be seen to change something; the message says what."""
        return self._finding(Applicability.UNSAFE, message, fix, evidence, at)

    def display_fix(
        self, message: str, fix: Build | Fix, *, evidence: Iterable[str] = (), at: Span | None = None
    ) -> Finding:
        """A fix that is shown and never applied."""
        return self._finding(Applicability.DISPLAY, message, fix, evidence, at)

    def _finding(
        self, level: Applicability, message: str, fix: Build | Fix | None, evidence: Iterable[str], at: Span | None
    ) -> Finding:
        build = (lambda: fix) if isinstance(fix, Fix) else fix
        return Finding(self.transform, level, message, at or self.span, tuple(evidence), build, self.path)


class Module(Subject):
    """One Python file: its source, its tree, its names."""

    def __init__(
        self, transform: str, source: Source, tree: ast.Module, names: Names, versions: Versions = UNKNOWN_VERSIONS
    ) -> None:
        super().__init__(transform, source.path, Span(0, 0))
        self.source = source
        self.tree = tree
        self.names = names
        self.versions = versions

    @classmethod
    def of(cls, source: Source, neighbours: Neighbours | None = None, versions: Versions = UNKNOWN_VERSIONS) -> Module:
        """Parse a source; raises Unreadable."""
        tree = source.parse()
        return cls("", source, tree, Names(tree, neighbours), versions)

    def seen_by(self, transform: str) -> Module:
        """The same module, for the findings of another transform."""
        return Module(transform, self.source, self.tree, self.names, self.versions)

    def import_name(self, qualified: str, node: ast.AST) -> tuple[str, tuple[Need, ...]]:
        """How to write a dotted name at a node, with the file's own alias if it has one, and what that needs."""
        from torchmod.imports import name_for

        return name_for(self.source, self.names, qualified, node)

    def wrap(self, first: ast.stmt, last: ast.stmt, header: str) -> tuple[tuple[Edit, ...], Wrapper]:
        """The edits that put the statements ``first`` to ``last`` under a header; raises Refused where it can't be."""
        from torchmod.regions import wrap

        return wrap(self.source, self.names, first, last, header)


class Document(Subject):
    """A file that is not Python, such as a shell script: its text, and edits of it."""

    def __init__(self, transform: str, source: Source) -> None:
        super().__init__(transform, source.path, Span(0, 0))
        self.source = source

    @property
    def text(self) -> str:
        """The text, with the line ends that the file has."""
        return self.source.text


class ProjectFiles(Subject):
    """All files of a run, read-only: for a transform whose fix spans several of them."""

    def __init__(self, transform: str, sources: Sequence[Source], neighbours: Callable[[str], Neighbours]) -> None:
        super().__init__(transform, sources[0].path if sources else "", Span(0, 0))
        self._sources = sources
        self._neighbours = neighbours

    @cached_property
    def modules(self) -> tuple[Module, ...]:
        """The files that parse, by path; a finding is made with the verbs of the module it is in."""
        from torchmod.model import Unreadable

        found = []
        for source in self._sources:
            try:
                found.append(Module.of(source, self._neighbours(source.path)).seen_by(self.transform))
            except Unreadable:
                continue  # it is named by the pass over single files
        return tuple(found)
