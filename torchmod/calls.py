"""A call that resolves to something known: what it calls, its arguments by parameter, and findings about it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from torchmod.arguments import Argument, Operand, bind, rewritten
from torchmod.knowledge.signature import Signature
from torchmod.model import Applicability, Edit, Finding, Fix, Need, Refused, Span
from torchmod.names import Names, Resolved
from torchmod.scopes import COMPREHENSIONS, FunctionNode
from torchmod.subjects import Build, Module, Subject

_LABEL = re.compile(r"(?:[\s)]|\\\r?\n|#[^\r\n]*)*=(?!=)")
"""What makes an f-string print an expression's own text, after the expression."""
MAX_SPAN, MAX_DEPTH = 20_000, 200
"""LibCST crashes the process on source that is nested much deeper than anybody's code."""

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Callee:
    """What a call calls: qualified names, how many arguments come before the parameters, and any doubt."""

    resolved: Resolved
    before: int = 0
    """1 where ``self`` is passed by hand: ``nn.MSELoss.__init__(self, False)``."""
    through: tuple[str, ...] = ()
    """The steps from the written name to the qualified one, as evidence."""


def callee(names: Names, call: ast.Call) -> Callee:
    """What a call calls. An own class without a constructor of its own is taken for its first base."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr == "__init__":
        if isinstance(func.value, ast.Call):
            return _super_init(names, func.value)
        found = _constructor(names, func.value)
        return Callee(found.resolved, 1, found.through)
    return _constructor(names, func)


def _super_init(names: Names, parent: ast.Call) -> Callee:
    """``super().__init__`` in a method of a class: the constructor of the class's first base."""
    function = names.enclosing(parent, FunctionNode)
    owner = names.parents.get(function) if function is not None else None
    while owner is not None and not isinstance(owner, ast.ClassDef | FunctionNode):
        owner = names.parents.get(owner)  # the method may stand under an `if`
    if names.qualified(parent.func) != "builtins.super" or not isinstance(owner, ast.ClassDef):
        return Callee(Resolved(doubt="it is called on the result of a call"))
    if parent.args and not (isinstance(parent.args[0], ast.Name) and names.definition(parent.args[0]) is owner):
        return Callee(Resolved(doubt="`super` is asked for another class"))
    if not _on_the_instance(names, function, parent):
        return Callee(Resolved(doubt="`super` is not asked for the constructor of this instance"))
    return _first_base(names, owner)


def _on_the_instance(names: Names, function: ast.AST | None, parent: ast.Call) -> bool:
    """Whether ``super()`` in a method, or ``super(Owner, self)``, has the instance, so that ``self`` is passed."""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or parent.keywords:
        return False
    decorators = {names.qualified(decorator) for decorator in function.decorator_list}
    if function.name == "__new__" or decorators & {"builtins.classmethod", "builtins.staticmethod"}:
        return False
    first = [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)][:1]
    given = [argument.id for argument in parent.args[1:] if isinstance(argument, ast.Name)]
    return not parent.args or (len(parent.args) == 2 and given == first)


def _first_base(names: Names, owner: ast.ClassDef) -> Callee:
    if not owner.bases:
        return Callee(Resolved(frozenset(["builtins.object"])))
    if _mixes(names, owner):
        return _unclear(owner)
    found = _constructor(names, owner.bases[0])
    return Callee(found.resolved, 0, (f"class `{owner.name}` (line {owner.lineno}) derives from it", *found.through))


def _constructor(names: Names, node: ast.expr) -> Callee:
    """What calling a name calls; own classes that define no constructor are followed to their first base."""
    seen: set[ast.ClassDef] = set()
    through: list[str] = []
    while True:
        own = names.definition(node)
        if not isinstance(own, ast.ClassDef) or own in seen or not own.bases or _makes_itself(names, own):
            return Callee(names.resolve(node), 0, tuple(through))
        if _mixes(names, own):
            return _unclear(own)
        seen.add(own)
        through.append(f"class `{own.name}` (line {own.lineno}) has no constructor of its own")
        node = own.bases[0]


def _makes_itself(names: Names, own: ast.ClassDef) -> bool:
    """Whether calling a class need not be what calling its first base is."""
    bound = names.scope_made_by(own).bindings.keys()
    return bool(own.keywords or own.decorator_list or bound & {"__init__", "__new__"})


def _mixes(names: Names, own: ast.ClassDef) -> bool:
    """Whether another base may have a say in what the first base's constructor does, or come before what it calls."""
    return any(names.qualified(base) not in _WITHOUT_A_SAY for base in own.bases[1:])


_WITHOUT_A_SAY = {"torch.nn.Module", "builtins.object", "abc.ABC", "typing.Generic"}


def _unclear(own: ast.ClassDef) -> Callee:
    return Callee(
        Resolved(doubt=f"class `{own.name}` (line {own.lineno}) may get its constructor from any of its bases")
    )


def _runs_code(node: ast.expr) -> bool:
    """Whether evaluating an expression may run somebody's code, bind a name or raise (attributes are trusted)."""
    active = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Subscript, *COMPREHENSIONS)
    return any(isinstance(part, active) for part in ast.walk(node))


class Call(Subject):
    """A call of something that a transform asked for, with its arguments by parameter.

    Where it is not certain what is called, ``doubt`` says why, and every fix becomes a note.
    """

    def __init__(  # noqa: PLR0913
        self,
        transform: str,
        module: Module,
        node: ast.Call,
        found: Callee,
        *,
        name: str = "",
        signature: Signature | None = None,
        doubt: str = "",
    ) -> None:
        super().__init__(transform, module.path, module.source.span(node))
        self.module = module
        self.node = node
        self.name = name
        """The qualified name, such as ``torch.nn.MSELoss``; empty when it is nothing the transform knows."""
        self.signature = signature or Signature(())
        self.doubt = doubt
        self._callee = found

    @property
    def called(self) -> tuple[str, ...]:
        """Every qualified name that may be called; empty where nothing is known."""
        return tuple(sorted(self._callee.resolved.names))

    # the arguments

    @cached_property
    def arguments(self) -> Mapping[str, ast.expr]:
        """The values by parameter, as far as they are known by name or place."""
        return {a.parameter: a.value for a in self._bound if a.parameter}

    @cached_property
    def _bound(self) -> tuple[Argument, ...]:
        """All arguments in the order of the source."""
        return tuple(bind(self.node, self.signature, self._callee.before))

    @property
    def unpacks(self) -> tuple[bool, bool]:
        """Whether the call has ``*args``, and whether it has ``**kwargs``."""
        return (
            any(isinstance(value, ast.Starred) for value in self.node.args),
            any(keyword.arg is None for keyword in self.node.keywords),
        )

    def has(self, parameter: str) -> bool:
        """Whether the call gives the parameter a value, by name or by place."""
        return parameter in self.arguments

    def literal(self, parameter: str, default: object = None) -> object:
        """The parameter's value where it is written out as a constant; the expression's node where it is not."""
        node = self.arguments.get(parameter, _MISSING)
        if node is _MISSING:
            return default
        return node.value if isinstance(node, ast.Constant) else node

    def by_place(self, parameter: str) -> bool:
        """Whether the parameter is given without its name."""
        return any(a.parameter == parameter and not a.named for a in self._bound)

    def source_of(self, parameter: str) -> str:
        """The text of the parameter's value."""
        return self.module.source.of(self.arguments[parameter])

    def keeps_place(self, parameter: str) -> bool:
        """Whether a new argument takes the very place of the parameter's: none without a name follows."""
        after = [argument for argument in self._bound if argument.value in self._later_than(parameter)]
        return all(argument.named for argument in after)

    def passes_code(self, parameter: str) -> bool:
        """Whether a later argument runs somebody's code, which a value that moves to the end would come after."""
        return any(_runs_code(value) for value in self._later_than(parameter))

    def _later_than(self, parameter: str) -> list[ast.expr]:
        values = [argument.value for argument in self._bound]
        return values[values.index(self.arguments[parameter]) + 1 :]

    def may_be_none(self, parameter: str) -> bool:
        """Whether the parameter's value is a parameter of a function around the call that is None by default."""
        value = self.arguments[parameter]
        function = self.module.names.enclosing(self.node, FunctionNode)
        while isinstance(value, ast.Name) and isinstance(function, FunctionNode):
            positional = [*function.args.posonlyargs, *function.args.args]
            pairs = [*zip(reversed(positional), reversed(function.args.defaults), strict=False)]
            pairs += [(a, d) for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if d]
            for argument, default in pairs:
                if argument.arg == value.id:
                    return isinstance(default, ast.Constant) and default.value is None
            function = self.module.names.enclosing(function, FunctionNode)
        return False

    def moves_freely(self, parameter: str) -> bool:
        """Whether the parameter's value may be evaluated at another moment, or not at all: it runs nobody's code."""
        return not _runs_code(self.arguments[parameter])

    def operand(self, parameter: str, *, tight: bool = False) -> Operand:
        """The parameter's value as a piece of a larger expression, in brackets where it needs them.

        As it stands it can be a condition (``… if HERE else …``); ``tight`` is for after ``not``.
        """
        loose: tuple[type[ast.expr], ...] = (
            ast.IfExp,
            ast.Lambda,
            ast.NamedExpr,
            ast.Yield,
            ast.YieldFrom,
            ast.Starred,
        )
        node = self.arguments[parameter]
        return Operand(parameter, isinstance(node, (*loose, ast.BoolOp, ast.UnaryOp) if tight else loose))

    # findings

    @cached_property
    def evidence(self) -> tuple[str, ...]:
        """Why the call is what it is taken for."""
        if not self.name:
            return ()
        written = self.module.source.of(self.node.func)
        written = written if len(written) < 60 and "\n" not in written else written[:57].split("\n")[0] + "..."
        steps = [f"`{written}` is {' or '.join(self.called) or self.name}", *self._callee.through]
        root = self.node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name):
            steps += [f"`{root.id}` is bound on line {line}" for line in self.module.names.lines_of(root)[:1]]
        return tuple(steps)

    def _finding(
        self, level: Applicability, message: str, fix: Build | Fix | None, evidence: Iterable[str], at: Span | None
    ) -> Finding:
        if fix is not None and (self.doubt or not self.name):  # a fix needs to know what is called
            level, message, fix = Applicability.NOTE, self.doubt or "it is not known to be what is looked for", None
        return super()._finding(level, message, fix, (*self.evidence, *evidence), at)

    # surgery

    def rewrite(
        self,
        *,
        drop: Iterable[str] = (),
        put: Mapping[str, Sequence[str | Operand]] | None = None,
        needs: tuple[Need, ...] = (),
    ) -> Build:
        """A fix that drops parameters and puts others in; what follows a dropped place is named.

        ``put`` gives a parameter's new value as pieces: text, and operands of this call. It takes the place of the
        value that the parameter had; else of the first dropped one where no argument without a name follows; else it
        comes last. Raises Refused when the call cannot be taken apart safely.
        """
        dropped, new = frozenset(drop), dict(put or {})
        self._check_size()
        self._check_label()
        for pieces in new.values():
            self._check_quotes(pieces)

        def build() -> Fix:
            return Fix(self._edits(dropped, new), needs)

        return build

    def _check_size(self) -> None:
        if self.span.end - self.span.start > MAX_SPAN:
            raise Refused(f"the call is longer than {MAX_SPAN:,} characters")
        level: list[ast.AST] = [self.node]
        for _ in range(MAX_DEPTH):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
            if not level:
                return
        raise Refused(f"the call is nested deeper than {MAX_DEPTH} levels")

    def _check_label(self) -> None:
        """``f"{loss(a) = }"`` prints the call's own text."""
        source, names = self.module.source, self.module.names
        field = names.enclosing(self.node, ast.FormattedValue)
        while isinstance(field, ast.FormattedValue):
            if _LABEL.match(source.text, source.span(field.value).end):
                raise Refused("an f-string prints its text (`=`)")
            field = names.enclosing(field, ast.FormattedValue)

    def _check_quotes(self, pieces: Sequence[str | Operand]) -> None:
        """Inside an f-string, Python before 3.12 allows neither its own quote nor a backslash."""
        text = "".join(piece for piece in pieces if isinstance(piece, str))
        quotes = self._enclosing_quotes()
        if quotes and (any(quote in text for quote in quotes) or "\\" in text):
            raise Refused("it stands in an f-string whose quotes the new text would need")

    def _enclosing_quotes(self) -> set[str]:
        found: set[str] = set()
        string = self.module.names.enclosing(self.node, ast.JoinedStr)
        while string is not None:
            field = self.module.names.parents.get(string)
            if not (isinstance(field, ast.FormattedValue) and field.format_spec is string):  # it has no quotes
                found.add(self.module.source.quote_around(self.module.source.span(string), self.span.start))
            string = self.module.names.enclosing(string, ast.JoinedStr)
        return found

    def quoted(self, value: str) -> str:
        """A string literal in the quotes that the file prefers; inside an f-string, in the other ones."""
        quotes = self._enclosing_quotes()
        quote = self.module.source.quote
        if quote in quotes:
            quote = "'" if quote == '"' else '"'
        return f"{quote}{value}{quote}"

    def _edits(self, dropped: frozenset[str], put: Mapping[str, Sequence[str | Operand]]) -> tuple[Edit, ...]:
        text = self.module.source.text[self.span.start : self.span.end]
        shift = self.span.start
        edits = rewritten(text, self._bound, dropped, put)
        return tuple(Edit(e.start + shift, e.end + shift, e.text) for e in edits)
