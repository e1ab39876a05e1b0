"""What a name in a file means: scopes, imports, aliases, shadowing; node -> qualified name, or why it is not known.

One walk over the tree finds the scopes and everything that binds a name. Questions are answered on demand and hold for
every moment of the program: where a name is bound more than once, all its meanings count. Nothing here is recursive in
the depth of the tree.

Qualified names look like ``torch.nn.MSELoss``; what a file defines itself like ``:focal`` (and ``losses:focal`` when it
is another file of the same repository); a relative import that was not found like ``.losses.focal``.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import UnionType
from typing import Protocol

BUILTINS = frozenset(dir(builtins))
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
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


@dataclass(frozen=True, slots=True)
class Binding:
    """One place that gives a name its value: an import, a definition, an assignment, or what cannot be followed."""

    line: int
    qualified: str = ""
    value: ast.expr | None = None
    definition: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | None = None
    opaque: str = ""
    certain: bool = False
    """It stands at the top level of its scope, so it always happens."""


@dataclass(slots=True, eq=False)
class Scope:
    """A module, class, function or comprehension, and the names bound in it."""

    node: ast.AST
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)
    """Names declared ``global`` or ``nonlocal`` here."""

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    @property
    def is_comprehension(self) -> bool:
        return isinstance(self.node, COMPREHENSIONS)

    @property
    def enclosing(self) -> Scope | None:
        """The next scope whose names are seen from in here: classes are not."""
        scope = self.parent
        while scope is not None and scope.is_class:
            scope = scope.parent
        return scope


@dataclass(frozen=True, slots=True)
class Star:
    """A ``from module import *``."""

    module: str
    line: int


def canonical(name: str) -> str:
    """The public name of what torch keeps deeper: ``torch.nn.modules.loss.MSELoss`` is ``torch.nn.MSELoss``."""
    return re.sub(r"^torch\.nn\.modules\.(?:[a-z]\w*\.)?(?=[A-Z])", "torch.nn.", name)


class Names:
    """The names of one syntax tree."""

    def __init__(self, tree: ast.Module, neighbours: Neighbours | None = None) -> None:
        self.tree = tree
        self.module = Scope(tree, None)
        self.parents: dict[ast.AST, ast.AST] = {}
        self.calls: list[ast.Call] = []
        self.attributes: list[ast.Attribute] = []
        self.stars: list[Star] = []
        self._neighbours = neighbours
        self._scope_of: dict[ast.AST, Scope] = {}
        self._scope_made: dict[ast.AST, Scope] = {}
        self._attribute_stores: list[ast.Attribute] = []
        self._known: dict[tuple[Scope, str], Resolved] = {}
        self._open: set[tuple[Scope, str]] = set()
        self._circles = 0
        self._replaced: dict[str, int] | None = None
        _Walk(self).run()

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
        return self._scope_of[node]

    def scope_made_by(self, node: ast.AST) -> Scope:
        """The scope inside a function, class, lambda or comprehension."""
        return self._scope_made[node]

    def definition(self, node: ast.expr) -> ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The class or function of this file that a bare name can only mean."""
        if not isinstance(node, ast.Name):
            return None
        found = self._lookup(self._scope_of[node], node.id)
        return found[0].definition if len(found) == 1 else None

    def lines_of(self, node: ast.Name) -> list[int]:
        """The lines that bind a name."""
        return [binding.line for binding in self._lookup(self._scope_of[node], node.id)]

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
        return bool(self._lookup(self._scope_of[node], node.id)) or node.id in BUILTINS or bool(self.stars)

    def is_free(self, name: str) -> bool:
        """Whether no scope of the file binds or uses a name, so that a new one can be called so."""
        used = any(isinstance(node, ast.Name) and node.id == name for node in self._scope_of)
        bound = any(name in scope.bindings for scope in (self.module, *self._scope_made.values()))
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
                return self._resolve_name(self._scope_of[node], node.id, depth)
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
        for node in self._attribute_stores:
            yield node.value, node.attr
        for call in self.calls:
            match call:
                case ast.Call(func=ast.Name(id="setattr"), args=[target, ast.Constant(value=str(attribute)), _]):
                    yield target, attribute


def _without_none(bindings: list[Binding]) -> list[Binding]:
    """Without ``x = None``, when there is another: the fallback of a failed import, which no use can reach."""
    kept = [b for b in bindings if not (isinstance(b.value, ast.Constant) and b.value.value is None)]
    return kept or bindings


class _Walk:
    """The one walk: scopes, bindings, parents, calls. Keeps its own stack, in source order."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._stack: list[tuple[ast.AST, ast.AST | None, Scope]] = []
        self._handlers: dict[type[ast.AST], Callable[[ast.AST, Scope], None]] = {
            ast.FunctionDef: self._function,
            ast.AsyncFunctionDef: self._function,
            ast.Lambda: self._function,
            ast.ClassDef: self._class,
            ast.ListComp: self._comprehension,
            ast.SetComp: self._comprehension,
            ast.DictComp: self._comprehension,
            ast.GeneratorExp: self._comprehension,
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.Assign: self._assign,
            ast.AnnAssign: self._assign,
            ast.NamedExpr: self._walrus,
            ast.Global: self._declare,
            ast.Nonlocal: self._declare,
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Call: self._call,
            ast.ExceptHandler: self._named,
            ast.MatchAs: self._named,
            ast.MatchStar: self._named,
            ast.MatchMapping: self._named,
        }

    def run(self) -> None:
        names = self._names
        self._stack.append((names.tree, None, names.module))
        while self._stack:
            node, parent, scope = self._stack.pop()
            if parent is not None:
                names.parents[node] = parent
            handler = self._handlers.get(type(node))
            if handler is not None:
                handler(node, scope)
            else:
                self._push(node, ast.iter_child_nodes(node), scope)

    def _push(self, parent: ast.AST, children: Iterator[ast.AST] | list[ast.AST], scope: Scope) -> None:
        """Children wait their turn, in source order."""
        self._stack += [(child, parent, scope) for child in reversed(list(children))]

    def _bind(self, scope: Scope, name: str, binding: Binding) -> None:
        target = self._names.module if scope.elsewhere.get(name) == "global" else scope
        if scope.elsewhere.get(name) == "nonlocal":
            outer = scope.enclosing
            while outer is not None and name not in outer.bindings:
                outer = outer.enclosing
            target = outer or scope
        target.bindings.setdefault(name, []).append(binding)

    def _certain(self, node: ast.AST, scope: Scope) -> bool:
        return self._names.parents.get(node) is scope.node

    def _function(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, FunctionNode)
        inner = Scope(node, scope)
        self._names._scope_made[node] = inner
        self._names._scope_of[node] = scope
        arguments = node.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parameters += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        called = "a lambda" if isinstance(node, ast.Lambda) else f"`{node.name}`"
        for parameter in parameters:
            self._names.parents[parameter] = node
            inner.bindings.setdefault(parameter.arg, []).append(
                Binding(parameter.lineno, opaque=f"is a parameter of {called}")
            )
        outside: list[ast.AST] = [d for d in (*arguments.defaults, *arguments.kw_defaults) if d is not None]
        outside += [p.annotation for p in parameters if p.annotation is not None]
        if isinstance(node, ast.Lambda):
            self._push(node, [node.body], inner)
        else:
            self._bind(scope, node.name, Binding(node.lineno, definition=node, certain=self._certain(node, scope)))
            outside = [*node.decorator_list, *outside, *([node.returns] if node.returns else [])]
            self._push(node, [*node.body], inner)
            self._type_parameters(node, inner)
        self._push(node, outside, scope)

    def _class(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, ast.ClassDef)
        inner = Scope(node, scope)
        self._names._scope_made[node] = inner
        self._names._scope_of[node] = scope
        self._bind(scope, node.name, Binding(node.lineno, definition=node, certain=self._certain(node, scope)))
        self._push(node, [*node.body], inner)
        self._type_parameters(node, inner)
        self._push(node, [*node.decorator_list, *node.bases, *node.keywords], scope)

    def _type_parameters(self, node: ast.AST, inner: Scope) -> None:
        for parameter in getattr(node, "type_params", ()):  # Python 3.12
            inner.bindings.setdefault(parameter.name, []).append(
                Binding(parameter.lineno, opaque="is a type parameter")
            )
            self._push(node, [parameter], inner)

    def _comprehension(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, COMPREHENSIONS)
        inner = Scope(node, scope)
        self._names._scope_made[node] = inner
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._push(node, [*results], inner)
        for index, generator in enumerate(node.generators):
            self._names.parents[generator] = node
            self._push(generator, [generator.target, *generator.ifs], inner)
            self._push(generator, [generator.iter], inner if index else scope)

    def _import(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, ast.Import)
        for alias in node.names:
            self._names.parents[alias] = node
            top = alias.name.split(".")[0]
            qualified = alias.name if alias.asname else top
            certain = self._certain(node, scope)
            self._bind(scope, alias.asname or top, Binding(node.lineno, qualified=qualified, certain=certain))

    def _import_from(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, ast.ImportFrom)
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            self._names.parents[alias] = node
            if alias.name == "*":
                self._names.stars.append(Star(module, node.lineno))
                continue
            qualified = f"{module}{'' if module.endswith('.') else '.'}{alias.name}"
            certain = self._certain(node, scope)
            self._bind(scope, alias.asname or alias.name, Binding(node.lineno, qualified=qualified, certain=certain))

    def _assign(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, ast.Assign | ast.AnnAssign)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        rest: list[ast.AST] = []
        for target in targets:
            pairs = _pairs(target, node.value)
            if pairs is None:
                rest.append(target)
                continue
            for name, value in pairs:
                self._names.parents[name] = self._names.parents.get(name, node)
                self._names._scope_of[name] = scope
                if value is not None:
                    certain = self._certain(node, scope)
                    self._bind(scope, name.id, Binding(node.lineno, value=value, certain=certain))
        if isinstance(node, ast.AnnAssign):
            rest.append(node.annotation)
        self._push(node, [*([node.value] if node.value else []), *rest], scope)

    def _walrus(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, ast.NamedExpr)
        holder = scope
        while holder.is_comprehension and holder.parent is not None:
            holder = holder.parent
        self._names._scope_of[node.target] = scope
        self._names.parents[node.target] = node
        self._bind(holder, node.target.id, Binding(node.lineno, value=node.value))
        self._push(node, [node.value], scope)

    def _declare(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, ast.Global | ast.Nonlocal)
        for name in node.names:
            scope.elsewhere[name] = "global" if isinstance(node, ast.Global) else "nonlocal"

    def _name(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, ast.Name)
        self._names._scope_of[node] = scope
        if isinstance(node.ctx, ast.Store):
            self._bind(scope, node.id, Binding(node.lineno, opaque="is assigned something that is not followed"))

    def _attribute(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, ast.Attribute)
        if isinstance(node.ctx, ast.Load):
            self._names.attributes.append(node)
        else:
            self._names._attribute_stores.append(node)
        self._push(node, [node.value], scope)

    def _call(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, ast.Call)
        self._names.calls.append(node)
        self._push(node, ast.iter_child_nodes(node), scope)

    def _named(self, node: ast.AST, scope: Scope) -> None:
        """Nodes that hold the name they bind as a string."""
        name = node.rest if isinstance(node, ast.MatchMapping) else getattr(node, "name", None)
        if name:
            self._bind(scope, name, Binding(getattr(node, "lineno", 0), opaque="is bound by a pattern or an exception"))
        self._push(node, ast.iter_child_nodes(node), scope)


def _pairs(target: ast.expr, value: ast.expr | None) -> list[tuple[ast.Name, ast.expr | None]] | None:
    """Name and value of an assignment that can be followed, element by element of a tuple; None for the others."""
    if isinstance(target, ast.Name):
        return [(target, value)]
    if not isinstance(target, ast.Tuple | ast.List) or not isinstance(value, ast.Tuple | ast.List):
        return None
    names = [name for name in target.elts if isinstance(name, ast.Name)]
    starred = any(isinstance(element, ast.Starred) for element in value.elts)
    if len(names) < len(target.elts) or len(names) != len(value.elts) or starred:
        return None
    return list(zip(names, value.elts, strict=True))
