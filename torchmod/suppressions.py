"""Comments that silence findings: ``# torchmod: ignore[name]`` on a statement, ``ignore-file[name]`` at the top."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from torchmod.model import UNUSED_SUPPRESSION, Applicability, Finding, Span
from torchmod.source import Source
from torchmod.words import nearest

MARK = "torchmod:"
_COMMENT = re.compile(r"#\s*torchmod:\s*(?P<kind>[\w-]*)\s*(?:\[(?P<names>[^\]]*)\])?")


@dataclass(slots=True)
class Suppression:
    """One comment; ``lines`` are those of the statement it stands on, or None for the whole file."""

    span: Span
    names: tuple[str, ...]
    lines: range | None
    problem: str = ""
    used: set[str] = field(default_factory=set)


class Suppressions:
    """All suppressions of a file. Later passes over a changed text go by the order of the comments."""

    def __init__(self, source: Source, tree: ast.Module | None) -> None:
        self.all: list[Suppression] = []
        if MARK in source.text:
            self.all = list(_python(source, tree) if tree is not None else _plain(source))

    def carry_over(self, earlier: Suppressions) -> None:
        """Take over what was used in an earlier pass."""
        if len(self.all) == len(earlier.all):
            for new, old in zip(self.all, earlier.all, strict=True):
                new.used |= old.used

    def silences(self, transform: str, line: int) -> bool:
        """Whether a finding of a transform on a line is silenced; remembers which comment did it."""
        hit = False
        for one in self.all:
            if transform in one.names and (one.lines is None or line in one.lines):
                one.used.add(transform)
                hit = True
        return hit

    def findings(self, path: str, active: Collection[str], known: Collection[str]) -> Iterator[Finding]:
        """Comments that silence nothing, or cannot be understood; names of transforms that did not run don't count."""
        for one in self.all:
            problems = [one.problem] if one.problem else []
            for name in one.names:
                if name not in known:
                    problems.append(f"there is no transform called `{name}`{nearest(name, known)}")
                elif name in active and name not in one.used:
                    problems.append(f"`{name}` has nothing to silence here: remove it")
            for problem in problems:
                yield Finding(UNUSED_SUPPRESSION, Applicability.DISPLAY, problem, one.span, path=path)


def _python(source: Source, tree: ast.Module) -> Iterator[Suppression]:
    statements = list(_statements(source, tree))
    body = tree.body[1:] if ast.get_docstring(tree, clean=False) is not None else tree.body
    first = _first_line(body[0]) if body else source.line_count + 1
    for token in source.tokens():
        if token.type != tokenize.COMMENT or MARK not in token.string:
            continue
        line = token.start[0]
        around = [lines for lines in statements if line in lines] or [range(line, line + 1)]
        lines = range(min(lines.start for lines in around), max(lines.stop for lines in around))
        yield from _parsed(token.string, source.token_span(token), lines, line < first)


def _statements(source: Source, tree: ast.Module) -> Iterator[range]:
    """The lines of each statement and decorator; of what has a body, those of its header."""
    for node in ast.walk(tree):
        for decorator in getattr(node, "decorator_list", ()):
            yield range(decorator.lineno, decorator.end_lineno + 1)
        body = getattr(node, "body", None) or getattr(node, "cases", None)
        if isinstance(node, ast.match_case):
            yield range(_first_line(node), _header_end(source, node.body[0]) + 1)
        elif isinstance(node, ast.stmt | ast.ExceptHandler):
            end = _header_end(source, body[0]) if body else node.end_lineno or node.lineno
            yield range(node.lineno, end + 1)


def _first_line(node: ast.stmt | ast.match_case) -> int:
    """The line that a statement or a case starts on, its decorators included."""
    start = node.pattern if isinstance(node, ast.match_case) else node
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([start.lineno, *(decorator.lineno for decorator in decorators)])


def _header_end(source: Source, inner: ast.stmt | ast.match_case) -> int:
    """The last line of the header before a first statement or case."""
    end = _first_line(inner) - 1
    if isinstance(inner, ast.stmt) and source.line_text(inner.lineno)[: inner.col_offset].strip(" \t\f"):
        end += 1  # it stands on the header's line
    while source.line_text(end).lstrip()[:1] in ("", "#"):
        end -= 1
    return end


def _plain(source: Source) -> Iterator[Suppression]:
    for line in range(1, source.line_count + 1):
        text = source.line_text(line).rstrip()
        found = _COMMENT.search(text)
        if found is not None:
            start = source.line_span(line).start
            span = Span(start + found.start(), start + len(text))
            yield from _parsed(text[found.start() :], span, range(line, line + 2), line <= 5)


def _parsed(comment: str, span: Span, lines: range, at_top: bool) -> Iterator[Suppression]:
    for found in _COMMENT.finditer(comment):
        names = tuple(name.strip() for name in (found["names"] or "").split(",") if name.strip())
        problem, where = "", None if found["kind"] == "ignore-file" else lines
        if found["kind"] not in ("ignore", "ignore-file"):
            problem = "write `# torchmod: ignore[name]` or `# torchmod: ignore-file[name]`"
        elif not names:
            problem = f"name what to silence, as in `# torchmod: {found['kind']}[name]`"
        elif where is None and not at_top:
            problem = "`ignore-file` belongs at the top of the file, before the first statement"
        yield Suppression(span, () if problem else names, where, problem)
