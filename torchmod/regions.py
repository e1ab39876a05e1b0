"""Putting statements under a new header, such as ``with torch.no_grad():``: their lines move in, strings stay."""

from __future__ import annotations

import ast
import tokenize

from torchmod.model import Edit, Refused, Span, Wrapper
from torchmod.names import Names
from torchmod.source import Source


def wrap(
    source: Source, names: Names, first: ast.stmt, last: ast.stmt, header: str
) -> tuple[tuple[Edit, ...], Wrapper]:
    """The edits that put the statements ``first`` to ``last`` (of one block) under ``header``.

    Lines that begin inside a string keep their bytes. Raises Refused where a line holds more than the region: a suite
    on its header's line, statements joined by semicolons, a backslash that runs into the region or out of it.
    """
    top = min([first, *getattr(first, "decorator_list", ())], key=lambda node: node.lineno)
    start, end = source.offset(top.lineno, top.col_offset), source.span(last).end
    if names.parents.get(first) is not names.parents.get(last):
        raise Refused("the statements are not in one block")
    line_start = source.line_span(top.lineno).start
    indent = source.text[line_start:start]
    if isinstance(top, ast.expr):  # a decorator's position is after its @
        indent = indent.rstrip().removesuffix("@")
    if indent.strip():
        raise Refused("the statement shares its line with the header of its block or with another statement")
    last_line = source.line_at(end)
    rest = source.text[end : source.line_span(last_line).end].strip()
    if rest and not rest.startswith("#"):
        raise Refused("another statement stands on the region's last line")
    if top.lineno > 1 and source.line_text(top.lineno - 1).rstrip("\r\n").endswith("\\"):
        raise Refused("the line before ends in a backslash")
    unit = _indent_unit(source, names, indent)
    inside = _lines_in_strings(source)
    edits = [Edit(line_start, line_start, f"{indent}{header}{source.newline}")]
    for line in range(top.lineno, last_line + 1):
        if line not in inside and source.line_text(line).strip():
            at = source.line_span(line).start
            edits.append(Edit(at, at, unit))
    edits[:2] = [Edit(line_start, line_start, f"{indent}{header}{source.newline}{unit}")]
    return tuple(edits), Wrapper(header, Span(line_start, end))


def _indent_unit(source: Source, names: Names, indent: str) -> str:
    """One step of indentation, as the file does it."""
    for node in ast.walk(names.tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list) or not body or not isinstance(node, ast.stmt) or body[0].lineno == node.lineno:
            continue
        outer, inner = (_indent(source, line) for line in (node.lineno, body[0].lineno))
        if inner.startswith(outer) and inner != outer and ("\t" in inner) == ("\t" in (indent or inner)):
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
    for token in source.tokens():
        if token.type == tokenize.STRING:
            found.update(range(token.start[0] + 1, token.end[0] + 1))
        elif token.type in starts:
            opened.append(token.start[0])
        elif token.type in ends:
            found.update(range(opened.pop() + 1, token.end[0] + 1))
    return found
