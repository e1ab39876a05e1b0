"""Comments that silence findings: ``# torchmod: ignore[name]`` on a statement, ``ignore-file[name]`` at the top."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from torchmod.model import UNUSED_SUPPRESSION, Applicability, Finding, Span
from torchmod.selection import nearest
from torchmod.source import Source

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
    headers = sorted(_headers(tree), key=len)
    body = tree.body[1:] if ast.get_docstring(tree, clean=False) is not None else tree.body
    first = body[0].lineno if body else source.line_count + 1
    for token in source.tokens():
        if token.type != tokenize.COMMENT or MARK not in token.string:
            continue
        line = token.start[0]
        lines = next((header for header in headers if line in header), range(line, line + 1))
        yield from _parsed(token.string, source.token_span(token), lines, line < first)


def _headers(tree: ast.Module) -> Iterator[range]:
    """The lines of each statement; of a compound one, those of its header."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or node.end_lineno is None:
            continue
        body = getattr(node, "body", None) or getattr(node, "cases", None)
        if not body:
            yield range(node.lineno, node.end_lineno + 1)
            continue
        inner = getattr(body[0], "lineno", None) or body[0].pattern.lineno
        decorators = [d.lineno for d in getattr(body[0], "decorator_list", ())]
        yield range(node.lineno, max(node.lineno + 1, min([inner, *decorators])))


def _plain(source: Source) -> Iterator[Suppression]:
    for line in range(1, source.line_count + 1):
        text = source.line_text(line)
        if MARK in text and "#" in text:
            start = source.line_span(line).start + text.index("#")
            end = source.line_span(line).start + len(text.rstrip())
            yield from _parsed(source.text[start:end], Span(start, end), range(line, line + 2), line <= 5)


def _parsed(comment: str, span: Span, lines: range, at_top: bool) -> Iterator[Suppression]:
    found = _COMMENT.search(comment)
    if found is None:
        return
    names = tuple(name.strip() for name in (found["names"] or "").split(",") if name.strip())
    problem, where = "", None if found["kind"] == "ignore-file" else lines
    if found["kind"] not in ("ignore", "ignore-file"):
        problem = "write `# torchmod: ignore[name]` or `# torchmod: ignore-file[name]`"
    elif not names:
        problem = f"name what to silence, as in `# torchmod: {found['kind']}[name]`"
    elif where is None and not at_top:
        problem = "`ignore-file` belongs at the top of the file, before the first statement"
    yield Suppression(span, () if problem else names, where, problem)
