"""Making a name available in a file: the file's own alias where there is one, else an import that the fix needs."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from torchmod.model import Edit, Need, Refused
from torchmod.names import Names
from torchmod.regions import start_of
from torchmod.scopes import FunctionNode
from torchmod.source import Source


def name_for(source: Source, names: Names, qualified: str, node: ast.AST) -> tuple[str, tuple[Need, ...]]:
    """How to write ``qualified`` at ``node``, and what has to be imported for it.

    An alias counts only where nothing else can be meant by it at that place. Raises Refused when the import would
    take a name that the file uses for something else.
    """
    alias = _alias(names, qualified, node)
    if alias is not None:
        return alias, ()
    package = qualified.split(".", maxsplit=1)[0]
    if not names.is_free(package):
        raise Refused(f"`{package}` would have to be imported, but the file uses that name for something else")
    return qualified, (Need(f"import {package}", before=_first_use(source, names, node)),)


def _alias(names: Names, qualified: str, node: ast.AST) -> str | None:
    """The shortest spelling that resolves to the name through what the module imports."""
    found = []
    for local, bindings in names.module.bindings.items():
        if not all(binding.qualified and binding.certain for binding in bindings):
            continue
        meaning = names.resolve_in_module(local).only
        if meaning is None or not (qualified == meaning or qualified.startswith(meaning + ".")):
            continue
        if bindings[0].line < getattr(node, "lineno", 0) and not _shadowed(names, local, node):
            found.append(local + qualified[len(meaning) :])
    return min(found, key=lambda text: (text.count("."), len(text), text), default=None)


def _shadowed(names: Names, local: str, node: ast.AST) -> bool:
    """Whether a scope between the module and the node gives the name another meaning."""
    at: ast.AST | None = node
    while at is not None:
        if isinstance(at, FunctionNode | ast.ClassDef) or hasattr(at, "generators"):
            scope = names.scope_made_by(at)
            if local in scope.bindings:
                return True
        at = names.parents.get(at)
    return False


def _first_use(source: Source, names: Names, node: ast.AST) -> int:
    """Where the module-level statement starts that a node is in."""
    at = node
    while not isinstance(names.parents.get(at), ast.Module):
        at = names.parents[at]
    assert isinstance(at, ast.stmt)
    return _line_start(source, at)


def preludes(source: Source, tree: ast.Module, needs: Iterable[Need]) -> tuple[Edit, ...]:
    """The edits that write each needed statement once: imports after the imports, the rest after those.

    They stand before the first use that any fix named. Raises Refused where there is no such place.
    """
    there = {source.of(statement): start_of(source, statement) for statement in reversed(tree.body)}
    wanted: dict[str, Need] = {}
    for need in needs:
        if need.code in there and (need.before is None or there[need.code] < need.before):
            continue  # an earlier pass has written it
        known = wanted.get(need.code)
        earliest = min((n.before for n in (need, known) if n is not None and n.before is not None), default=None)
        wanted[need.code] = Need(need.code, earliest, need.is_import)
    edits: dict[int, str] = {}
    for need in sorted(wanted.values(), key=lambda n: (not n.is_import, n.code)):
        at = _insertion_point(source, tree, need)
        edits[at] = edits.get(at, "") + need.code.replace("\n", source.newline) + source.newline
    return tuple(_line_edit(source, at, text) for at, text in sorted(edits.items()))


def _insertion_point(source: Source, tree: ast.Module, need: Need) -> int:
    """The start of the line after the last import that stands before the first use, or after the docstring."""
    limit = len(source.text) if need.before is None else need.before
    after: ast.stmt | None = None
    for statement in tree.body:
        if start_of(source, statement) >= limit:
            break
        if _imports(statement) or _must_come_first(tree, statement):
            after = statement
    if after is not None:
        point = source.line_span(_line_between(source, tree, after)).end
    elif tree.body:
        point = _line_start(source, tree.body[0])
    else:
        point = len(source.text)
    late = any(_must_come_first(tree, statement) and start_of(source, statement) >= point for statement in tree.body)
    if late or point > limit:
        raise Refused("there is no line between the imports and the first use for what the fix needs")
    return point


def _must_come_first(tree: ast.Module, statement: ast.stmt) -> bool:
    """Whether nothing may be put before a statement: the docstring, and imports from ``__future__``."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return statement is tree.body[0] and ast.get_docstring(tree, clean=False) is not None


def _line_start(source: Source, statement: ast.stmt) -> int:
    return source.line_span(source.line_at(start_of(source, statement))).start


def _line_between(source: Source, tree: ast.Module, after: ast.stmt) -> int:
    """The first line from a statement's last one on at whose end no statement goes on."""
    line = after.end_lineno or after.lineno
    while True:
        text = source.line_text(line).rstrip("\r\n")
        running = [s.end_lineno for s in tree.body if s.lineno <= line and s.end_lineno and line < s.end_lineno]
        if running:
            line = max(running)
        elif text.endswith("\\") and "#" not in text:
            line += 1
        else:
            return line


def _imports(statement: ast.stmt) -> bool:
    """Whether a module-level statement is an import, or a ``try`` or ``if`` round imports."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    if isinstance(statement, ast.Try | ast.If):
        return all(isinstance(inner, ast.Import | ast.ImportFrom) for inner in statement.body)
    return False


def _line_edit(source: Source, at: int, text: str) -> Edit:
    """Insert whole lines at a line start; at the end of a file that lacks its last line end, begin with one."""
    if at == len(source.text) and source.text and source.text[-1] not in "\r\n":
        return Edit(at, at, source.newline + text.removesuffix(source.newline))
    return Edit(at, at, text)
