"""The scopes of a syntax tree and everything that binds a name in them: one walk, not recursive in the tree's depth."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True)
class Binding:
    """One place that gives a name its value: an import, a definition, an assignment, or what cannot be followed."""

    line: int
    qualified: str = ""
    value: ast.expr | None = None
    definition: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | None = None
    opaque: str = ""
    done: int = 0
    """Where it stands at the top level of its scope, so that it always happens: its last line. Else 0."""

    @property
    def certain(self) -> bool:
        """It always happens."""
        return self.done > 0


@dataclass(slots=True, eq=False)
class Scope:
    """A module, class, function or comprehension, and the names bound in it."""

    node: ast.AST
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    """An empty list where a name is local and gets no value, as by ``x: int`` or ``del x``."""
    elsewhere: dict[str, str] = field(default_factory=dict)
    """Names declared ``global`` or ``nonlocal`` here."""
    of_types: bool = False
    """The scope that holds the type parameters of a class or function (Python 3.12), between it and its parent."""

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    @property
    def is_comprehension(self) -> bool:
        return isinstance(self.node, COMPREHENSIONS)

    @property
    def class_seen(self) -> Scope | None:
        """The class whose names are seen from right here: from its body, and from type parameters in it."""
        scope = self.parent if self.of_types else self
        return scope if scope is not None and scope.is_class else None

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
    certain: bool
    """It stands at the top level of the module, so it always happens."""


class Scopes:
    """What the walk over one tree found: scopes, parents, calls, attributes, star imports."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, None)
        self.parents: dict[ast.AST, ast.AST] = {}
        self.calls: list[ast.Call] = []
        self.attributes: list[ast.Attribute] = []
        self.attribute_targets: list[ast.Attribute] = []
        self.stars: list[Star] = []
        self.of: dict[ast.AST, Scope] = {}
        """The scope that a Name is looked up in, or that a class or function is defined in."""
        self.made_by: dict[ast.AST, Scope] = {}
        """The scope inside a class, function, lambda or comprehension."""
        _Walk(self, tree).run()


class _Walk:
    """The one walk: scopes, bindings, parents, calls. Keeps its own stack, in source order."""

    def __init__(self, found: Scopes, tree: ast.Module) -> None:
        self._found = found
        self._tree = tree
        self._stack: list[tuple[ast.AST, ast.AST | None, Scope]] = []
        self._nonlocal: list[tuple[Scope, str, Binding]] = []
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
            ast.Subscript: self._subscript,
            ast.Call: self._call,
            ast.ExceptHandler: self._named,
            ast.MatchAs: self._named,
            ast.MatchStar: self._named,
            ast.MatchMapping: self._named,
        }
        if sys.version_info >= (3, 12):
            self._handlers[ast.TypeAlias] = self._type_alias

    def run(self) -> None:
        self._stack.append((self._tree, None, self._found.module))
        while self._stack:
            node, parent, scope = self._stack.pop()
            if parent is not None:
                self._found.parents[node] = parent
            handler = self._handlers.get(type(node))
            if handler is not None:
                handler(node, scope)
            else:
                self._push(node, ast.iter_child_nodes(node), scope)
        for scope, name, binding in self._nonlocal:
            owner = scope.enclosing
            while owner is not None and name not in owner.bindings:
                owner = owner.enclosing
            (owner or scope).bindings.setdefault(name, []).append(binding)
        self._handlers.clear()  # they are bound to us, a circle that would keep the tree

    def _push(self, parent: ast.AST, children: Iterable[ast.AST], scope: Scope) -> None:
        """Children wait their turn, in source order."""
        self._stack += [(child, parent, scope) for child in reversed(list(children))]

    def _bind(self, scope: Scope, name: str, binding: Binding) -> None:
        where = scope.elsewhere.get(name)
        if where is None or scope is self._found.module:
            scope.bindings.setdefault(name, []).append(binding)
        elif where == "global":
            self._found.module.bindings.setdefault(name, []).append(replace(binding, done=0))
        else:  # the function that it belongs to may bind it further down
            self._nonlocal.append((scope, name, binding))

    def _localize(self, scope: Scope, name: str) -> None:
        """Make a name a local one that gets no value here."""
        if scope is not self._found.module and name not in scope.elsewhere:
            scope.bindings.setdefault(name, [])

    def _done(self, node: ast.stmt, scope: Scope) -> int:
        """The last line of a statement that always happens, else 0."""
        always = self._found.parents.get(node) is scope.node
        return (node.end_lineno or node.lineno) if always else 0

    def _function(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, FunctionNode)
        around = self._type_parameters(node, scope)
        inner = Scope(node, around)
        self._found.made_by[node] = inner
        self._found.of[node] = scope
        arguments = node.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parameters += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        called = "a lambda" if isinstance(node, ast.Lambda) else f"`{node.name}`"
        for parameter in parameters:
            self._found.parents[parameter] = node
            inner.bindings.setdefault(parameter.arg, []).append(
                Binding(parameter.lineno, opaque=f"is a parameter of {called}")
            )
        outside: list[ast.expr] = [d for d in (*arguments.defaults, *arguments.kw_defaults) if d is not None]
        annotations = [p.annotation for p in parameters if p.annotation is not None]
        if isinstance(node, ast.Lambda):
            self._push(node, [node.body], inner)
        else:
            outside = [*node.decorator_list, *outside]
            annotations += [node.returns] if node.returns else []
            ends = [p.end_lineno for p in parameters] + [e.end_lineno for e in (*outside, *annotations)]
            header = max([node.lineno, *(end for end in ends if end)])  # the body runs later
            done = header if self._done(node, scope) else 0
            self._bind(scope, node.name, Binding(node.lineno, definition=node, done=done))
            self._push(node, node.body, inner)
        self._push(node, annotations, around)
        self._push(node, outside, scope)

    def _class(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, ast.ClassDef)
        around = self._type_parameters(node, scope)
        inner = Scope(node, around)
        self._found.made_by[node] = inner
        self._found.of[node] = scope
        self._bind(scope, node.name, Binding(node.lineno, definition=node, done=self._done(node, scope)))
        self._push(node, node.body, inner)
        self._push(node, [*node.bases, *node.keywords], around)
        self._push(node, node.decorator_list, scope)

    def _type_parameters(self, node: ast.AST, scope: Scope) -> Scope:
        """The scope that a definition's annotations and bases are evaluated in: one of its own if it is generic."""
        parameters = getattr(node, "type_params", None)  # Python 3.12
        if not parameters:
            return scope
        between = Scope(parameters[0], scope, of_types=True)
        for parameter in parameters:
            between.bindings[parameter.name] = [Binding(parameter.lineno, opaque="is a type parameter")]
        self._push(node, parameters, between)
        return between

    def _type_alias(self, node: ast.AST, scope: Scope) -> None:
        self._push(node, [node.value], self._type_parameters(node, scope))  # type: ignore[attr-defined]
        self._push(node, [node.name], scope)  # type: ignore[attr-defined]

    def _comprehension(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, COMPREHENSIONS)
        inner = Scope(node, scope)
        self._found.made_by[node] = inner
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._push(node, [*results], inner)
        for index, generator in enumerate(node.generators):
            self._found.parents[generator] = node
            self._push(generator, [generator.target, *generator.ifs], inner)
            self._push(generator, [generator.iter], inner if index else scope)

    def _import(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, ast.Import)
        for alias in node.names:
            self._found.parents[alias] = node
            top = alias.name.split(".")[0]
            qualified = alias.name if alias.asname else top
            done = self._done(node, scope)
            self._bind(scope, alias.asname or top, Binding(node.lineno, qualified=qualified, done=done))

    def _import_from(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, ast.ImportFrom)
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            self._found.parents[alias] = node
            if alias.name == "*":
                self._found.stars.append(Star(module, node.lineno, self._done(node, self._found.module) > 0))
                continue
            qualified = f"{module}{'' if module.endswith('.') else '.'}{alias.name}"
            done = self._done(node, scope)
            self._bind(scope, alias.asname or alias.name, Binding(node.lineno, qualified=qualified, done=done))

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
                self._found.parents[name] = self._found.parents.get(name, node)
                self._found.of[name] = scope
                if value is None:
                    self._localize(scope, name.id)
                else:
                    self._bind(scope, name.id, Binding(node.lineno, value=value, done=self._done(node, scope)))
        if isinstance(node, ast.AnnAssign):
            rest.append(node.annotation)
        self._push(node, [*([node.value] if node.value else []), *rest], scope)

    def _walrus(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, ast.NamedExpr)
        holder = scope
        while holder.is_comprehension and holder.parent is not None:
            holder = holder.parent
        self._found.of[node.target] = scope
        self._found.parents[node.target] = node
        self._bind(holder, node.target.id, Binding(node.lineno, value=node.value))
        self._push(node, [node.value], scope)

    def _declare(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, ast.Global | ast.Nonlocal)
        for name in node.names:
            scope.elsewhere[name] = "global" if isinstance(node, ast.Global) else "nonlocal"

    def _name(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, ast.Name)
        self._found.of[node] = scope
        if isinstance(node.ctx, ast.Store):
            self._bind(scope, node.id, Binding(node.lineno, opaque="is assigned something that is not followed"))
        elif isinstance(node.ctx, ast.Del):
            if scope is self._found.module or scope.elsewhere.get(node.id) == "global":
                self._bind(scope, node.id, Binding(node.lineno, opaque="is deleted"))
            else:
                self._localize(scope, node.id)

    def _attribute(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, ast.Attribute)
        if isinstance(node.ctx, ast.Load):
            self._found.attributes.append(node)
        else:
            self._found.attribute_targets.append(node)
        self._push(node, [node.value], scope)

    def _subscript(self, node: ast.AST, scope: Scope) -> None:
        """``globals()["name"] = value`` binds a name, too."""
        match node:
            case ast.Subscript(
                value=ast.Call(func=ast.Name(id="globals" | "locals" | "vars" as function), args=[]),
                slice=ast.Constant(value=str(name)),
                ctx=ast.Store() | ast.Del(),
            ):
                target = self._found.module if function == "globals" else scope
                self._bind(target, name, Binding(node.lineno, opaque=f"is assigned through `{function}()`"))
        self._push(node, ast.iter_child_nodes(node), scope)

    def _call(self, node: ast.AST, scope: Scope) -> None:
        assert isinstance(node, ast.Call)
        self._found.calls.append(node)
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
