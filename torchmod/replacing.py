"""Where a file gives what it did not define another meaning: assigned attributes, patches, ``globals()``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from torchmod.scopes import Scopes

GLOBALS = "<globals>"
"""Stands for every name of the module."""


def canonical(name: str) -> str:
    """The public name of what torch keeps deeper: ``torch.nn.modules.loss.MSELoss`` is ``torch.nn.MSELoss``."""
    return re.sub(r"^torch\.nn\.modules\.(?:[a-z]\w*\.)?(?=[A-Z])", "torch.nn.", name)


def attribute_targets(scopes: Scopes) -> Iterator[tuple[ast.expr, str]]:
    """Objects whose attributes are assigned or deleted, with the attribute; ``*`` where it is computed."""
    for node in scopes.attribute_targets:
        yield node.value, node.attr
    for node in scopes.attributes:
        if node.attr == "__dict__":
            yield node.value, "*"
    for call in scopes.calls:
        yield from _set_by(call)


def _set_by(call: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    match call:
        case ast.Call(
            func=ast.Name(id="setattr" | "delattr") | ast.Attribute(attr="setattr" | "delattr" | "object"),
            args=[target, attribute, *_],
        ):  # also pytest's `monkeypatch.setattr` and the standard library's `patch.object`
            name = attribute.value if isinstance(attribute, ast.Constant) else None
            yield target, name if isinstance(name, str) else "*"
        case ast.Call(func=ast.Attribute(attr="__setattr__" | "__delattr__", value=target)):
            yield target, "*"
        case ast.Call(func=ast.Name(id="vars"), args=[target]):
            yield target, "*"
        case ast.Call(func=ast.Attribute(attr="object" | "multiple")) if call.keywords:
            yield from ((target, "*") for target in call.args[:1])
            yield from ((keyword.value, "*") for keyword in call.keywords if keyword.arg == "target")


def patched(parents: Mapping[ast.AST, ast.AST]) -> Iterator[tuple[str, int]]:
    """Names of torch that a string of the file spells out: `mock.patch` and `sys.modules` replace by name.

    And `GLOBALS`, where the module's names may get new values in a way that does not name them. With the lines.
    """
    for node in parents:  # every node but the module
        match node:
            case ast.Constant(value=str(text)) if re.fullmatch(r"torch(\.\w+)+", text):
                yield canonical(text), node.lineno
            case ast.Call(func=ast.Name(id="exec"), args=[_]):
                yield GLOBALS, node.lineno
            case ast.Call(func=ast.Name(id="globals" | "vars"), args=[]) if not _only_looks_up(parents.get(node)):
                yield GLOBALS, node.lineno


def _only_looks_up(use: ast.AST | None) -> bool:
    """Whether a dictionary of names is only looked up in; assigning to one named item is a binding of that name."""
    match use:
        case ast.Subscript(ctx=ast.Load()) | ast.Subscript(slice=ast.Constant()):
            return True
        case ast.Attribute(attr="get" | "keys" | "items" | "values" | "copy") | ast.Compare():
            return True
    return False
