"""What a name in a file means: scopes, imports, aliases, shadowing; node -> qualified name, or why it is not known.

`scopes` finds everything that binds a name. Questions are answered on demand and hold for
every moment of the program: where a name is bound more than once, all its meanings count.

Qualified names look like ``torch.nn.MSELoss``; what a file defines itself like ``:focal`` (and ``losses:focal`` when it
is another file of the same repository); a relative import that was not found like ``.losses.focal``.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Protocol

from torchmod.scopes import Binding, Scope, Scopes

BUILTINS = frozenset(dir(builtins))
_DEPTH = 40  # aliases of aliases; a longer chain is not somebody's code
_CIRCLES = 1000  # names that are defined by each other


class Neighbours(Protocol):
    """The other files of the repository, as far as names need them."""

    def member(self, module: str, name: str) -> str | None:
        """The qualified name of what an own module calls ``name``; None when that is not known."""

    def exports(self, module: str) -> dict[str, str] | None:
        """What a star import of an own or known module binds, with its meanings; None for an unknown module."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The qualified names a node may have, and why it may be something else besides."""

    names: frozenset[str] = frozenset()
    doubt: str = ""

    @property
    def only(self) -> str | None:
        """The qualified name, where it is the only possibility."""
        return next(iter(self.names)) if len(self.names) == 1 and not self.doubt else None

    def __or__(self, other: Resolved) -> Resolved:
        return Resolved(self.names | other.names, self.doubt or other.doubt)


def canonical(name: str) -> str:
    """The public name of what torch keeps deeper: ``torch.nn.modules.loss.MSELoss`` is ``torch.nn.MSELoss``."""
    return re.sub(r"^torch\.nn\.modules\.(?:[a-z]\w*\.)?(?=[A-Z])", "torch.nn.", name)


class Names:
    """The names of one syntax tree."""

    def __init__(self, tree: ast.Module, neighbours: Neighbours | None = None) -> None:
        self.tree = tree
        self._scopes = Scopes(tree)
        self.module = self._scopes.module
        self.parents = self._scopes.parents
        self.calls = self._scopes.calls
        self.attributes = self._scopes.attributes
        self.stars = self._scopes.stars
        self._neighbours = neighbours
        self._known: dict[tuple[Scope, str], Resolved] = {}
        self._open: set[tuple[Scope, str]] = set()
        self._circles = 0
        self._replaced: dict[str, int] | None = None

    # questions

    def resolve(self, node: ast.expr) -> Resolved:
        """What an expression names. Attribute chains, aliases and conditional expressions are followed."""
        return self._resolve(node, 0)

    def qualified(self, node: ast.expr) -> str | None:
        """The one qualified name of an expression, or None."""
        return self.resolve(node).only

    def resolve_in_module(self, name: str) -> Resolved:
        """What a name means at the module's level."""
        return self._resolve_name(self.module, name, 0)

    def scope_of(self, node: ast.AST) -> Scope:
        """The scope that a Name is looked up in, or that a statement's names go to."""
        return self._scopes.of[node]

    def scope_made_by(self, node: ast.AST) -> Scope:
        """The scope inside a function, class, lambda or comprehension."""
        return self._scopes.made_by[node]

    def definition(self, node: ast.expr) -> ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The class or function of this file that a bare name can only mean."""
        if not isinstance(node, ast.Name):
            return None
        found = self._lookup(self._scopes.of[node], node.id)
        return found[0].definition if len(found) == 1 else None

    def lines_of(self, node: ast.Name) -> list[int]:
        """The lines that bind a name."""
        return [binding.line for binding in self._lookup(self._scopes.of[node], node.id)]

    def enclosing(self, node: ast.AST, kinds: type[ast.AST] | UnionType) -> ast.AST | None:
        """The nearest node around this one that is of a kind."""
        at = self.parents.get(node)
        while at is not None and not isinstance(at, kinds):
            at = self.parents.get(at)
        return at

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The statement that a node is, or is part of."""
        at: ast.AST | None = node
        while at is not None and not isinstance(at, ast.stmt):
            at = self.parents.get(at)
        return at

    def is_bound(self, node: ast.Name) -> bool:
        """Whether the name is bound anywhere it is looked up (a star import of an unknown module may bind it)."""
        return bool(self._lookup(self._scopes.of[node], node.id)) or node.id in BUILTINS or bool(self.stars)

    def is_free(self, name: str) -> bool:
        """Whether no scope of the file binds or uses a name, so that a new one can be called so."""
        used = any(isinstance(node, ast.Name) and node.id == name for node in self._scopes.of)
        bound = any(name in scope.bindings for scope in (self.module, *self._scopes.made_by.values()))
        return not (used or bound)

    # answers

    def _resolve(self, node: ast.expr, depth: int) -> Resolved:
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        found = self._resolve_root(node, depth)
        for attribute in reversed(attributes):
            if not found.names:
                return found
            found = self._member(found, attribute)
        return found

    def _resolve_root(self, node: ast.expr, depth: int) -> Resolved:
        if depth > _DEPTH:
            return Resolved(doubt="its aliases go round in a circle")
        match node:
            case ast.Name():
                return self._resolve_name(self._scopes.of[node], node.id, depth)
            case ast.IfExp():
                return self._resolve(node.body, depth + 1) | self._resolve(node.orelse, depth + 1)
            case ast.NamedExpr():
                return self._resolve(node.value, depth + 1)
            case ast.BoolOp():
                found = Resolved()
                for value in node.values:
                    found |= self._resolve(value, depth + 1)
                return found
        return Resolved(doubt="it is the result of an expression")

    def _resolve_name(self, scope: Scope, name: str, depth: int) -> Resolved:
        key = scope, name
        if key in self._known:
            return self._known[key]
        if key in self._open or self._circles > _CIRCLES:
            self._circles += 1
            return Resolved(doubt=f"`{name}` is defined by itself")
        circles = self._circles
        self._open.add(key)
        try:
            found = self._resolve_new(scope, name, depth)
        finally:
            self._open.discard(key)
        if not self._open:
            self._circles = circles = 0
            self._known[key] = found
        elif self._circles == circles:  # else it was cut short, and depends on who asked
            self._known[key] = found
        return found

    def _resolve_new(self, scope: Scope, name: str, depth: int) -> Resolved:
        bindings = self._lookup(scope, name)
        found = Resolved()
        for binding in _without_none(bindings):
            found |= self._meaning(name, binding, depth)
        in_module = not bindings or any(b in self.module.bindings.get(name, ()) for b in bindings)
        if in_module:
            found |= self._from_stars(name, bindings)
        if not found.names and not found.doubt:
            if name in BUILTINS:
                return Resolved(frozenset([f"builtins.{name}"]))
            return Resolved(doubt=f"`{name}` is not defined in this file")
        return found

    def _meaning(self, name: str, binding: Binding, depth: int) -> Resolved:
        if binding.qualified:
            return Resolved(frozenset([self._followed(binding.qualified)]))
        if binding.definition is not None:
            return Resolved(frozenset([f":{name}"]))
        if binding.value is not None:
            return self._resolve(binding.value, depth + 1)
        return Resolved(doubt=f"`{name}` {binding.opaque} (line {binding.line})")

    def _from_stars(self, name: str, bindings: list[Binding]) -> Resolved:
        """What star imports may make of a module-level name, besides its own bindings."""
        found = Resolved()
        settled = max((b.line for b in bindings if b.certain), default=0)
        for star in self.stars:
            if star.line < settled:
                continue
            exports = self._neighbours.exports(star.module) if self._neighbours else None
            if exports is None:
                if name not in BUILTINS or bindings:
                    found |= Resolved(doubt=f"`from {star.module} import *` (line {star.line}) may define `{name}`")
            elif name in exports:
                found |= Resolved(frozenset([exports[name]]))
        return found

    def _member(self, base: Resolved, attribute: str) -> Resolved:
        names = frozenset(self._followed(f"{name}.{attribute}") for name in base.names)
        doubt = base.doubt
        replaced = self._replaced_attributes()
        for name in sorted(names & replaced.keys()):
            doubt = doubt or f"`{name}` is replaced on line {replaced[name]}"
        return Resolved(names, doubt)

    def _followed(self, name: str) -> str:
        """A name imported from a file of the repository, as that file means it."""
        if self._neighbours is not None and not name.startswith("torch."):
            module, _, last = name.rpartition(".")
            if module.strip("."):
                name = self._neighbours.member(module, last) or name
        return canonical(name)

    def _lookup(self, scope: Scope | None, name: str) -> list[Binding]:
        """The bindings that a name, looked up in a scope, may find."""
        found: list[Binding] = []
        first = True
        while scope is not None:
            where = scope.elsewhere.get(name)
            if where == "global":
                return found + self.module.bindings.get(name, [])
            if where is None and name in scope.bindings and (first or not scope.is_class):
                found = found + scope.bindings[name]
                if not scope.is_class:
                    return found
                # before its own binding is reached, a class body sees the name outside
            scope, first = scope.enclosing, False
        return found

    def _replaced_attributes(self) -> dict[str, int]:
        """Dotted names that the file itself assigns to, such as ``torch.nn.MSELoss = Mine``, with the line."""
        if self._replaced is None:
            self._replaced = {}  # while it is being found, nothing is
            found: dict[str, int] = {}
            for target, attribute in self._attribute_targets():
                for name in self.resolve(target).names:
                    if not name.startswith(":"):
                        found[canonical(f"{name}.{attribute}")] = target.lineno
            self._replaced = found
            self._known.clear()
        return self._replaced

    def _attribute_targets(self) -> Iterator[tuple[ast.expr, str]]:
        for node in self._scopes.attribute_targets:
            yield node.value, node.attr
        for call in self.calls:
            match call:
                case ast.Call(func=ast.Name(id="setattr"), args=[target, ast.Constant(value=str(attribute)), _]):
                    yield target, attribute


def _without_none(bindings: list[Binding]) -> list[Binding]:
    """Without ``x = None``, when there is another: the fallback of a failed import, which no use can reach."""
    kept = [b for b in bindings if not (isinstance(b.value, ast.Constant) and b.value.value is None)]
    return kept or bindings
