"""What a name in a file means: scopes, imports, aliases, shadowing; node -> qualified name, or why it is not known.

`scopes` finds everything that binds a name. Questions are answered on demand and hold for
every moment of the program: where a name is bound more than once, all its meanings count.

Qualified names look like ``torch.nn.MSELoss``; what a file defines itself like ``:focal`` (and ``losses:focal`` when it
is another file of the same repository); a relative import that was not found like ``.losses.focal``.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import UnionType
from typing import Protocol

from torchmod.replacing import GLOBALS, attribute_targets, canonical, patched
from torchmod.scopes import Binding, FunctionNode, Scope, Scopes

BUILTINS = frozenset(name for name in dir(builtins) if name not in ("__doc__", "__name__", "__spec__"))
_OF_MODULES = frozenset(["__doc__", "__file__", "__loader__", "__name__", "__package__", "__spec__"])
_KEPT_BY_STARS = frozenset(
    ["getattr", "hasattr", "isinstance", "issubclass", "len", "object", "property", "setattr", "super", "type"]
)
"""Builtins that no library is known to hide by a star import; `sum`, `open` and the like are hidden by many."""
_DEPTH = 12  # aliases of aliases; a longer chain is not somebody's code


class Neighbours(Protocol):
    """The other files of the repository, as far as names need them."""

    def member(self, module: str, name: str) -> str | None:
        """The qualified name of what an own module calls ``name``; None when that is not known."""

    def exports(self, module: str) -> dict[str, str] | None:
        """What a star import of an own or known module binds, with its meanings; None for an unknown module."""

    def owns(self, module: str) -> bool:
        """Whether the repository has a module of that name, which an import may find first."""

    def inside(self, name: str) -> bool:
        """Whether the file is a package's, and the package holds a module of that name.

        Whoever imports that module binds its name in the package.
        """


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
        self._replaced: dict[str, int] | None = None
        self._looking = False
        self._cut = False

    # questions

    def resolve(self, node: ast.expr) -> Resolved:
        """What an expression names. Attribute chains, aliases and conditional expressions are followed."""
        self._find_replaced()
        return self._resolve(node, 0)

    def qualified(self, node: ast.expr) -> str | None:
        """The one qualified name of an expression, or None."""
        return self.resolve(node).only

    def resolve_in_module(self, name: str) -> Resolved:
        """What a name means at the module's level."""
        self._find_replaced()
        return self._resolve_name(self.module, name, 0)

    def busy_with(self, name: str) -> bool:
        """Whether a question that leads to this name is being answered: then another answer would be cut short."""
        return self._looking or (self.module, name) in self._open

    def forget(self) -> None:
        """Forget answers, since one was cut short."""
        self._known.clear()

    def exported(self) -> set[str] | None:
        """What a star import of this file binds; None where that cannot be seen."""
        listed = self.module.bindings.get("__all__")
        if listed is not None:
            uses = sum(isinstance(node, ast.Name) and node.id == "__all__" for node in self._scopes.of)
            literal = listed[0].value if len(listed) == 1 and listed[0].certain and uses == 1 else None
            return _strings(literal)
        found = {name for name in self.module.bindings if not name.startswith("_")}
        for star in self.stars:
            more = self._neighbours.exports(star.module) if self._neighbours else None
            if more is None:
                return None
            found |= {name for name in more if not name.startswith("_")}
        return found

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
        found, _ = self._lookup(self._scopes.of[node], node.id)
        return found[0].definition if len(found) == 1 and self.resolve(node).only else None

    def lines_of(self, node: ast.Name) -> list[int]:
        """The lines that bind a name."""
        return [binding.line for binding in self._lookup(self._scopes.of[node], node.id)[0]]

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
        known = node.id in BUILTINS or node.id in _OF_MODULES or bool(self.stars)
        return known or bool(self._lookup(self._scopes.of[node], node.id)[0])

    def is_free(self, name: str) -> bool:
        """Whether no scope of the file binds or uses a name, so that a new one can be called so."""
        return name not in self._taken

    @cached_property
    def _taken(self) -> set[str]:
        used = {node.id for node in self._scopes.of if isinstance(node, ast.Name)}
        return used.union(*(scope.bindings for scope in (self.module, *self._scopes.made_by.values())))

    # answers

    def _resolve(self, node: ast.expr, depth: int) -> Resolved:
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        found = self._resolve_root(node, depth)
        for attribute in reversed(attributes):
            found = self._member(found, attribute)
        return found

    def _resolve_root(self, node: ast.expr, depth: int) -> Resolved:
        if depth > _DEPTH:
            self._cut = True
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
        if key in self._open:
            self._cut = True
            return Resolved(doubt=f"`{name}` is defined by itself")
        self._open.add(key)
        try:
            found = self._resolve_new(scope, name, depth)
        finally:
            self._open.discard(key)
        self._known[key] = found  # where it was cut short, there is a doubt: it may lack names, but claims nothing
        return found

    def _resolve_new(self, scope: Scope, name: str, depth: int) -> Resolved:
        if name.startswith("__") and not name.endswith("__") and _in_class(scope):
            return Resolved(doubt=f"`{name}` is private to a class")
        bindings, to_module = self._lookup(scope, name)
        found = Resolved()
        for binding in _without_none(bindings):
            found |= self._meaning(name, binding, depth)
        if to_module:
            found |= self._besides(name)
        if not found.names and not found.doubt:
            return Resolved(doubt=f"`{name}` is not defined in this file")
        return found

    def _meaning(self, name: str, binding: Binding, depth: int) -> Resolved:
        if binding.qualified:
            return self._named([binding.qualified])
        if binding.definition is not None:
            return self._named([f":{name}"])
        if binding.value is not None:
            return self._resolve(binding.value, depth + 1)
        return Resolved(doubt=f"`{name}` {binding.opaque} (line {binding.line})")

    def _besides(self, name: str) -> Resolved:
        """What a name of the module may mean besides the module's bindings: a star import's, a submodule, a builtin.

        Only what has surely happened before the name's first use leaves no room for that.
        """
        if GLOBALS in (self._replaced or {}):
            line = (self._replaced or {})[GLOBALS]
            return Resolved(
                doubt=f"line {line} can reach every name of the file, and may give `{name}` another meaning"
            )
        bindings = self.module.bindings.get(name, ())
        stars = [(star, self._neighbours.exports(star.module) if self._neighbours else None) for star in self.stars]
        lines = [b.done for b in bindings]
        lines += [s.line for s, known in stars if s.certain and known and name in known and _is_of_torch(s.module)]
        first_use = self._first_uses.get(name, sys.maxsize)
        settled = max((line for line in lines if line < first_use), default=0)
        found = Resolved()
        for star, exports in stars:
            if star.line < settled:
                continue
            if exports is not None:
                if name in exports:
                    found |= self._named([exports[name]], self._replacement([f"{star.module}.{name}"]))
            elif bindings or name not in _KEPT_BY_STARS:
                found |= Resolved(doubt=f"`from {star.module} import *` (line {star.line}) may define `{name}`")
        if self._neighbours is not None and self._neighbours.inside(name):
            found |= Resolved(frozenset([f".{name}"]))
        if name in BUILTINS and not settled:
            found |= self._named([f"builtins.{name}"])
        return found

    @cached_property
    def _first_uses(self) -> dict[str, int]:
        """The line of each name's first use. A class's own methods run after it is defined, so they do not count."""
        found: dict[str, int] = {}
        uses = [(n, s) for n, s in self._scopes.of.items() if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        in_classes = {(scope, node.id) for node, scope in uses if scope.is_class}
        for node, scope in uses:
            if node.lineno < found.get(node.id, sys.maxsize):
                method = self._method_of(node.id, scope)
                name = getattr(method.node, "name", None) if method is not None else None
                if method is None or name is None or (method.parent, name) in in_classes:
                    found[node.id] = node.lineno
        return found

    def _method_of(self, name: str, scope: Scope) -> Scope | None:
        """The method that a scope is in, of the module's class of that name."""
        at: Scope | None = scope
        method = None
        while at is not None:
            if isinstance(at.node, ast.ClassDef) and at.node.name == name and self._scopes.of[at.node] is self.module:
                return method
            method = at if isinstance(at.node, FunctionNode) else method
            at = at.parent
        return None

    def _member(self, base: Resolved, attribute: str) -> Resolved:
        return self._named([f"{name}.{attribute}" for name in sorted(base.names)], base.doubt)

    def _named(self, names: Sequence[str], doubt: str = "") -> Resolved:
        """Names as the files they come from mean them, with a doubt where this file replaces one of them."""
        followed = frozenset(self._followed(name) for name in names)
        own_torch = any(map(_is_of_torch, followed)) and self._neighbours is not None and self._neighbours.owns("torch")
        doubt = doubt or ("a module of the project is called `torch`" if own_torch else "")
        return Resolved(followed, doubt or self._replacement({*names, *followed}))

    def _replacement(self, names: Collection[str]) -> str:
        """A doubt, where this file assigns to one of the names or to what they begin with."""
        replaced = self._replaced or {}
        for name in sorted(names) if replaced else ():
            for known in _prefixes(canonical(name)):
                if known in replaced:
                    return f"`{known}` is replaced on line {replaced[known]}"
        return ""

    def _followed(self, name: str) -> str:
        """A name imported from a file of the repository, as that file means it."""
        if self._neighbours is not None and not name.startswith("torch."):
            module, dot, last = name.rpartition(".")
            if not module.strip("."):  # `from . import name`
                module += dot
            name = (self._neighbours.member(module, last) if module else None) or name
        return canonical(name)

    def _lookup(self, scope: Scope, name: str) -> tuple[list[Binding], bool]:
        """The bindings that a name, looked up in a scope, may find; and whether the search reaches the module."""
        in_module = self.module.bindings.get(name, [])
        seen = None if scope.of_types and name in scope.bindings else scope.class_seen
        if seen is not None and (name in seen.bindings or seen.elsewhere.get(name) == "global"):
            # before its own binding is reached, a class sees the module's name: not that of a function around it
            return seen.bindings.get(name, []) + in_module, True
        at: Scope | None = scope
        while at is not None and at is not self.module and at.elsewhere.get(name) != "global":
            if name in at.bindings:
                return at.bindings[name], False
            at = at.enclosing
        return in_module, True

    def _find_replaced(self) -> None:
        """Find the dotted names that the file itself assigns to, such as ``torch.nn.MSELoss = Mine``."""
        if self._replaced is not None:
            return
        self._replaced, self._looking = {}, True  # while they are being found, nothing is replaced
        found: dict[str, int] = {}
        for target, attribute in attribute_targets(self._scopes):
            self._cut = False
            names = self._resolve(target, 0).names
            if self._cut:  # then it may be anything
                self._known.clear()
                found.setdefault(f"*.{attribute}", target.lineno)
            for name in names:
                found.setdefault(canonical(f"{name}.{attribute}"), target.lineno)
                if attribute in ("__init__", "__new__"):  # calling it is something else now
                    found.setdefault(name, target.lineno)
        found |= {name: line for name, line in patched(self.parents) if name not in found}
        self._replaced, self._looking = found, False
        self._known.clear()


def _strings(node: ast.expr | None) -> set[str] | None:
    """The strings of a literal list; None when it is anything else."""
    if not isinstance(node, ast.List | ast.Tuple):
        return None
    values = [element.value if isinstance(element, ast.Constant) else None for element in node.elts]
    strings = {value for value in values if isinstance(value, str)}
    return strings if all(isinstance(value, str) for value in values) else None


def _prefixes(name: str) -> Iterator[str]:
    """A dotted name ``a.b.c`` and what it begins with, and for each of them ``*.b`` and ``a.*``."""
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        yield ".".join(parts[:length])
        yield ".".join([*parts[: length - 1], "*"])
        yield f"*.{parts[length - 1]}"


def _in_class(scope: Scope) -> bool:
    at: Scope | None = scope
    while at is not None and not at.is_class:
        at = at.parent
    return at is not None


def _is_of_torch(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] == "torch"


def _without_none(bindings: list[Binding]) -> list[Binding]:
    """Without ``x = None``, when there is another: the fallback of a failed import, which no use can reach."""
    kept = [b for b in bindings if not (isinstance(b.value, ast.Constant) and b.value.value is None)]
    return kept or bindings
