"""Putting statements under a new header, such as ``with torch.no_grad():``: their lines move in, strings stay."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator

from torchmod.model import Edit, Refused, Span, Unreadable, Wrapper
from torchmod.names import Names
from torchmod.source import Source


def wrap(
    source: Source, names: Names, first: ast.stmt, last: ast.stmt, header: str
) -> tuple[tuple[Edit, ...], Wrapper]:
    """The edits that put the statements ``first`` to ``last`` (of one block) under ``header``.

    Lines that begin inside a string keep their bytes. Raises Refused where a line holds more than the region: a suite
    on its header's line, statements joined by semicolons, a backslash that runs into the region or out of it.
    """
    blocks = _blocks(names.parents.get(first))
    if not any(first in block and last in block[block.index(first) :] for block in blocks):
        raise Refused("the statements are not in one block")
    start, end = start_of(source, first), source.span(last).end
    first_line, last_line = source.line_at(start), source.line_at(end)
    indent = source.text[source.line_span(first_line).start : start]
    if isinstance(first, ast.If) and source.text.startswith("elif", start):
        raise Refused("an `elif` cannot stand apart from its `if`")
    if indent.strip():
        raise Refused("the statement shares its line with the header of its block or with another statement")
    rest = source.text[end : source.line_span(last_line).end].strip()
    if rest and not rest.startswith("#"):
        raise Refused("another statement stands on the region's last line")
    if first_line > 1 and source.line_text(first_line - 1).rstrip("\r\n").endswith("\\"):
        raise Refused("the line before ends in a backslash")
    unit = _indent_unit(source, names, indent)
    inside = _lines_in_strings(source)
    edits = [Edit(start, start, f"{header}{source.newline}{indent}{unit}")]
    for line in range(first_line + 1, last_line + 1):
        if line not in inside and source.line_text(line).strip():
            at = source.line_span(line).start + _depth(source.line_text(line), indent)
            edits.append(Edit(at, at, unit))
    return tuple(edits), Wrapper(header, Span(start, end))


def _blocks(parent: ast.AST | None) -> Iterator[list[ast.stmt]]:
    """The lists of statements in a node."""
    for _, value in ast.iter_fields(parent) if parent is not None else ():
        if isinstance(value, list):
            yield value


def start_of(source: Source, node: ast.AST) -> int:
    """Where a statement or another node starts, its decorators included."""
    for decorator in getattr(node, "decorator_list", ())[:1]:
        return source.text.rindex("@", 0, source.span(decorator).start)
    return source.span(node).start


def _depth(line: str, indent: str) -> int:
    """Where in a line another step of indentation goes: after a form feed, which sets the column back, else in front.

    In front means after its block's own indentation, so that tabs and blanks stand in one order on all lines.
    """
    after_feed = line.rfind("\f", 0, len(line) - len(line.lstrip(" \t\f"))) + 1
    return after_feed or (len(indent) if line.startswith(indent) else 0)


def _indent_unit(source: Source, names: Names, indent: str) -> str:
    """One step of indentation, as the file does it."""
    for node in ast.walk(names.tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list) or not body or not isinstance(node, ast.stmt) or body[0].lineno == node.lineno:
            continue
        outer, inner = (_indent(source, line) for line in (node.lineno, body[0].lineno))
        alike = "\f" not in inner and ("\t" in inner) == ("\t" in (indent or inner))
        if alike and inner.startswith(outer) and inner != outer:
            return inner[len(outer) :]
    return "\t" if "\t" in indent else "    "


def _indent(source: Source, line: int) -> str:
    text = source.line_text(line)
    return text[: len(text) - len(text.lstrip(" \t\f"))]


def _lines_in_strings(source: Source) -> set[int]:
    """The lines that begin inside a string token."""
    starts = {getattr(tokenize, name, None) for name in ("FSTRING_START", "TSTRING_START")} - {None}
    ends = {getattr(tokenize, name, None) for name in ("FSTRING_END", "TSTRING_END")} - {None}
    found: set[int] = set()
    opened: list[int] = []
    try:
        tokens = source.tokens()
    except Unreadable as error:
        raise Refused(str(error)) from None
    for token in tokens:
        if token.type == tokenize.STRING:
            found.update(range(token.start[0] + 1, token.end[0] + 1))
        elif token.type in starts:
            opened.append(token.start[0])
        elif token.type in ends:
            found.update(range(opened.pop() + 1, token.end[0] + 1))
    return found
