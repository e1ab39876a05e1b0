"""What a call calls, its arguments by parameter, and the rewrites it allows."""

import ast
from collections.abc import Sequence

import pytest

from torchmod.arguments import Operand
from torchmod.calls import MAX_DEPTH, MAX_SPAN, Call, Callee, callee
from torchmod.edits import apply
from torchmod.knowledge.signature import Signature
from torchmod.model import Applicability, Fix, Refused
from torchmod.names import Resolved
from torchmod.source import Source
from torchmod.subjects import Module

SIGNATURE = Signature(("a", "b", "c", "k"), ("k",))
HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import NLLLoss\n"


def marked(module: Module) -> ast.Call:
    """The call that has MARK among its arguments."""
    found = [c for c in module.names.calls if any(isinstance(a, ast.Name) and a.id == "MARK" for a in c.args)]
    assert len(found) == 1
    return found[0]


def called(text: str) -> Callee:
    module = Module.of(Source("x.py", HEAD + text))
    return callee(module.names, marked(module))


def resolved(text: str) -> str | None:
    return called(text).resolved.only


def call(text: str, *, signature: Signature = SIGNATURE, before: int = 0, doubt: str = "") -> Call:
    """The first call of ``f`` in a text."""
    module = Module.of(Source("x.py", text))
    node = next(c for c in module.names.calls if isinstance(c.func, ast.Name) and c.func.id == "f")
    found = Callee(Resolved(frozenset(["torch.f"])), before)
    return Call("some-transform", module, node, found, name="torch.f", signature=signature, doubt=doubt)


def rewritten(one: Call, drop: Sequence[str] = (), **put: Sequence[str | Operand]) -> str:
    fix = one.rewrite(drop=drop, put=put)()
    text = apply(one.module.source.text, fix.edits)
    ast.parse(text)
    return text


# what is called


@pytest.mark.parametrize(
    "text",
    [
        "nn.NLLLoss(MARK)",
        "torch.nn.NLLLoss(MARK)",
        "NLLLoss(MARK)",
        "Loss = nn.NLLLoss\nLoss(MARK)",
        "from torch.nn import NLLLoss as L\nL(MARK)",
        "import torch.nn as other\nother.NLLLoss(MARK)",
        "from torch.nn.modules.loss import NLLLoss as L\nL(MARK)",
    ],
)
def test_a_name_is_followed_to_what_it_means(text: str) -> None:
    assert resolved(text) == "torch.nn.NLLLoss"
    assert called(text).before == 0


@pytest.mark.parametrize(
    "text",
    [
        "class L(nn.NLLLoss):\n    pass\nL(MARK)",
        "class K(NLLLoss):\n    x = 1\nclass L(K):\n    def forward(self): pass\nL(MARK)",
        "class L(nn.NLLLoss, nn.Module):\n    pass\nL(MARK)",
        "class L(NLLLoss):\n    class Options:\n        def __init__(self): pass\nL(MARK)",
        "class L(NLLLoss):\n    def forward(self):\n        def __init__(): pass\nL(MARK)",
        "def g():\n    class L(NLLLoss):\n        pass\n    return L(MARK)",
    ],
)
def test_an_own_class_without_a_constructor_is_taken_for_its_base(text: str) -> None:
    found = called(text)
    assert found.resolved.only == "torch.nn.NLLLoss"
    assert "has no constructor of its own" in found.through[0]


@pytest.mark.parametrize(
    "body",
    [
        "    def __init__(self, size_average): pass",
        "    def __new__(cls, size_average): pass",
        "    if True:\n        def __init__(self, size_average): pass",
        "    __init__ = some_function",
        "    from other import __init__",
        "    __init__, x = some_function, 1",
        "    for __new__ in y: pass",
        "    def forward(self): pass\n    __init__ = forward",
    ],
)
def test_an_own_class_with_a_constructor_is_not_followed(body: str) -> None:
    assert resolved(f"class L(NLLLoss):\n{body}\nL(MARK)") == ":L"
    assert resolved(f"class K(NLLLoss):\n{body}\nclass L(K): pass\nL(MARK)") == ":K"


@pytest.mark.parametrize(
    "text",
    [
        "class L(NLLLoss, metaclass=Meta): pass\nL(MARK)",
        "class L(NLLLoss, option=1): pass\nL(MARK)",
        "@register\nclass L(NLLLoss): pass\nL(MARK)",
        "class L: pass\nL(MARK)",
        "class L(*bases): pass\nL(MARK)",
        "class L(make_base()): pass\nL(MARK)",
        "class L(NLLLoss): pass\nclass L(NLLLoss): pass\nL(MARK)",
        "class L(NLLLoss): pass\nL = other\nL(MARK)",
        "class L(L): pass\nL(MARK)",
        "class L(K): pass\nclass K(L): pass\nL(MARK)",
        "def f(L):\n    L(MARK)\nclass L(NLLLoss): pass",
        "losses[0](MARK)",
        "NLLLoss()(MARK)",
        "(lambda x: x)(MARK)",
    ],
)
def test_what_may_be_something_else_is_not_followed(text: str) -> None:
    assert resolved(text) != "torch.nn.NLLLoss"


def test_a_later_base_may_bring_the_constructor_so_an_own_first_base_is_not_followed() -> None:
    diamond = "class K(NLLLoss): pass\nclass M(NLLLoss):\n    def __init__(self, size_average): pass\n"
    found = called(f"{diamond}class L(K, M): pass\nL(MARK)").resolved
    assert not found.names
    assert "any of its bases" in found.doubt
    found = called(f"{diamond}class L(K, M):\n    def __init__(self):\n        super().__init__(MARK)").resolved
    assert not found.names


def test_a_class_that_an_unknown_star_import_may_replace_is_in_doubt() -> None:
    assert not resolved("class L(NLLLoss): pass\nfrom somewhere import *\nL(MARK)")


# constructors of bases


@pytest.mark.parametrize(
    "line",
    [
        "super().__init__(MARK)",
        "super(L, self).__init__(MARK)",
        "x = super().__init__(MARK)",
        "if y: super().__init__(MARK)",
    ],
)
@pytest.mark.parametrize("head", ["def __init__(self):", "def __init__(self, /, *a):", "async def reset(self):"])
def test_super_is_the_first_base(line: str, head: str) -> None:
    found = called(f"class L(nn.NLLLoss):\n    {head}\n        {line}")
    assert found.resolved.only == "torch.nn.NLLLoss"
    assert found.before == 0
    assert found.through == ("class `L` (line 4) derives from it",)


@pytest.mark.parametrize(
    "text",
    [
        "class L(NLLLoss, object):\n    def __init__(self):\n        super().__init__(MARK)",
        "class K(NLLLoss): pass\nclass L(K):\n    def __init__(self):\n        super().__init__(MARK)",
        "class L(NLLLoss, metaclass=M):\n    def __init__(self):\n        super().__init__(MARK)",
        "@register\nclass L(NLLLoss):\n    def __init__(self):\n        super().__init__(MARK)",
        "if x:\n    class L(NLLLoss):\n        def __init__(self):\n            super().__init__(MARK)",
        "class L(NLLLoss):\n    if x:\n        def __init__(self):\n            super().__init__(MARK)",
        "class O:\n    class L(NLLLoss):\n        def __init__(self):\n            super().__init__(MARK)",
        "def g():\n    class L(NLLLoss):\n        def __init__(self):\n            super(L, self).__init__(MARK)",
        "class L(NLLLoss):\n    @no_grad()\n    def __init__(self):\n        super().__init__(MARK)",
    ],
)
def test_super_is_found_wherever_the_class_stands(text: str) -> None:
    assert resolved(text) == "torch.nn.NLLLoss"


@pytest.mark.parametrize(
    "text",
    [
        # another class is asked for
        "class K: pass\nclass L(NLLLoss):\n    def __init__(self):\n        super(K, self).__init__(MARK)",
        "class L(NLLLoss):\n    def __init__(self):\n        super(self.__class__, self).__init__(MARK)",
        "class L(NLLLoss):\n    def __init__(self):\n        super(type(self), self).__init__(MARK)",
        "class K(NLLLoss):\n    class L(K):\n        def __init__(self):\n            super(K, self).__init__(MARK)",
        # not by the instance
        "class L(NLLLoss):\n    def __init__(self):\n        super(L).__init__(MARK)",
        "class L(NLLLoss):\n    def __init__(self, cls):\n        super(L, cls).__init__(MARK)",
        "class L(NLLLoss):\n    def __init__(self):\n        super(L, type(self)).__init__(MARK)",
        "class L(NLLLoss):\n    @classmethod\n    def make(cls):\n        super().__init__(MARK)",
        "class L(NLLLoss):\n    @staticmethod\n    def make(self):\n        super(L, self).__init__(MARK)",
        "class L(NLLLoss):\n    def __new__(cls):\n        super().__init__(MARK)",
        # not in a method
        "class L(NLLLoss):\n    def __init__(self):\n        def later():\n            super().__init__(MARK)",
        "class L(NLLLoss):\n    def __init__(self):\n        x = lambda: super().__init__(MARK)",
        "class L(NLLLoss):\n    super().__init__(MARK)",
        "def g(self):\n    super().__init__(MARK)",
        "super().__init__(MARK)",
        # not Python's
        "def super(): return x\nclass L(NLLLoss):\n    def __init__(self):\n        super().__init__(MARK)",
        "class L(NLLLoss):\n    def __init__(self, super):\n        super().__init__(MARK)",
        "class L(NLLLoss):\n    def __init__(self):\n        other().__init__(MARK)",
        # not a base that is known
        "class K:\n    def __init__(self, x): pass\nclass L(K, NLLLoss):\n    def __init__(self):\n"
        "        super().__init__(MARK)",
        "class Mixin: pass\nclass L(NLLLoss, Mixin):\n    def __init__(self):\n        super().__init__(MARK)",
        "class Mixin: pass\nclass L(Mixin, NLLLoss):\n    def __init__(self):\n        super().__init__(MARK)",
        "class K(NLLLoss):\n    def __init__(self, x): pass\nclass L(K):\n    def __init__(self):\n"
        "        super().__init__(MARK)",
        "class L:\n    def __init__(self):\n        super().__init__(MARK)",
        "class L(bases[0]):\n    def __init__(self):\n        super().__init__(MARK)",
    ],
)
def test_super_of_something_else_is_not_followed(text: str) -> None:
    assert resolved(text) != "torch.nn.NLLLoss"


def test_super_of_a_class_without_bases_is_that_of_object() -> None:
    assert resolved("class L:\n    def __init__(self):\n        super().__init__(MARK)") == "builtins.object"


@pytest.mark.parametrize(
    "text",
    [
        "class L(NLLLoss):\n    def __init__(self):\n        nn.NLLLoss.__init__(self, MARK)",
        "class L(NLLLoss):\n    def __init__(self):\n        NLLLoss.__init__(self, MARK)",
        "class K(NLLLoss): pass\nclass L(K):\n    def __init__(self):\n        K.__init__(self, MARK)",
    ],
)
def test_a_constructor_called_by_hand_has_self_before_its_arguments(text: str) -> None:
    assert (called(text).resolved.only, called(text).before) == ("torch.nn.NLLLoss", 1)


@pytest.mark.parametrize("receiver", ["loss", "self.loss", "NLLLoss()", "losses[0]", "type(x)"])
def test_the_constructor_of_an_instance_is_not_followed(receiver: str) -> None:
    assert resolved(f"loss = NLLLoss()\n{receiver}.__init__(MARK)") != "torch.nn.NLLLoss"


# arguments


def test_arguments_are_known_by_name_and_by_place() -> None:
    one = call("f(1, x, k=y)")
    assert {name: one.source_of(name) for name in one.arguments} == {"a": "1", "b": "x", "k": "y"}
    assert [name for name in "abck" if one.has(name)] == ["a", "b", "k"]
    assert [name for name in "abck" if one.by_place(name)] == ["a", "b"]


def test_self_before_the_arguments_is_none_of_them() -> None:
    one = call("f(self, 1)", before=1)
    assert one.literal("a") == 1
    assert not one.has("b")


def test_a_literal_is_a_constant_and_nothing_else() -> None:
    one = call("f(None, -1, 'x', k=y)")
    assert one.literal("a", default=7) is None
    assert isinstance(one.literal("b"), ast.UnaryOp)
    assert one.literal("c") == "x"
    assert isinstance(one.literal("k"), ast.Name)
    assert call("f()").literal("a") is None
    assert call("f()").literal("a", default=7) == 7


def test_a_number_is_not_taken_for_a_boolean() -> None:
    assert call("f(0)").literal("a") is not False
    assert call("f((False))").literal("a") is False


def test_unpacking_is_seen() -> None:
    assert call("f(1, k=2)").unpacks == (False, False)
    assert call("f(*xs)").unpacks == (True, False)
    assert call("f(**kw)").unpacks == (False, True)
    assert call("f(1, *xs, k=2, **kw)").unpacks == (True, True)
    assert not call("f(*xs, 1)").has("a")


@pytest.mark.parametrize("value", ["x", "x.y", "not x", "x is None", "x and y or 3", "'s'", "(x)", "f'{x}'"])
def test_what_runs_nobodys_code_moves_freely(value: str) -> None:
    assert call(f"f({value})").moves_freely("a")


@pytest.mark.parametrize(
    "value", ["g()", "not g()", "x[g()]", "(x := 1)", "[y for y in x]", "{y: 1 for y in x}", "lambda: g()", "f'{g()}'"]
)
def test_what_may_run_code_does_not_move(value: str) -> None:
    assert not call(f"f(a={value})").moves_freely("a")


def test_waiting_does_not_move() -> None:
    assert not call("async def g():\n    f(await x)").moves_freely("a")
    assert not call("def g():\n    f((yield))").moves_freely("a")


@pytest.mark.parametrize(
    ("value", "in_condition", "after_not"),
    [
        ("x", "x", "x"),
        ("x == y", "x == y", "x == y"),
        ("x or y", "x or y", "(x or y)"),
        ("(x) or (y)", "(x) or (y)", "((x) or (y))"),
        ("not x", "not x", "(not x)"),
        ("x if y else z", "(x if y else z)", "(x if y else z)"),
        ("(x) if y else (z)", "((x) if y else (z))", "((x) if y else (z))"),
        ("lambda: x", "(lambda: x)", "(lambda: x)"),
        ("(x := y)", "(x := y)", "(x := y)"),
    ],
)
def test_an_operand_has_brackets_where_it_needs_them(value: str, in_condition: str, after_not: str) -> None:
    one = call(f"f(k={value})")
    assert rewritten(one, k=["1 if ", one.operand("k"), " else 2"]) == f"f(k=1 if {in_condition} else 2)"
    assert rewritten(one, k=["not ", one.operand("k", tight=True)]) == f"f(k=not {after_not})"


def test_the_meaning_of_an_operand_survives() -> None:
    one = call("f(k=(x) or (y))")
    new = ast.parse(rewritten(one, k=["not ", one.operand("k", tight=True)]), mode="eval")
    assert ast.dump(new) == ast.dump(ast.parse("f(k=not (x or y))", mode="eval"))


# rewriting


def test_edits_are_those_of_the_file() -> None:
    text = "é = 1\nx = f(1, 2)  # é\n"
    fix = call(text).rewrite(drop=["a"])()
    assert apply(text, fix.edits) == "é = 1\nx = f(b=2)  # é\n"


def test_a_call_in_a_call_is_rewritten_alone() -> None:
    assert rewritten(call("g(f(1, h(2)), 3)"), ["a"]) == "g(f(b=h(2)), 3)"


def test_what_makes_the_call_too_large_is_refused_before_libcst_sees_it() -> None:
    with pytest.raises(Refused, match="longer than 20,000"):
        call(f"f('{'x' * MAX_SPAN}', 2)").rewrite(drop=["a"])
    with pytest.raises(Refused, match="deeper than 200"):
        call(f"f(x{'.y' * (MAX_DEPTH + 1)}, 2)").rewrite(drop=["a"])
    with pytest.raises(Refused, match="deeper than 200"):
        call(f"f({'-' * (MAX_DEPTH + 1)}x, 2)").rewrite(drop=["a"])


def test_the_largest_and_the_deepest_calls_that_are_allowed_are_rewritten() -> None:
    assert rewritten(call(f"f('{'x' * (MAX_SPAN - 10)}', 2)"), ["a"]) == "f(b=2)"
    assert rewritten(call(f"f(x{'.y' * (MAX_DEPTH - 5)}, 2)"), ["b"]) == f"f(x{'.y' * (MAX_DEPTH - 5)})"
    assert rewritten(call(f"f({'[' * 190}{']' * 190}, 2)"), ["b"]) == f"f({'[' * 190}{']' * 190})"


def test_a_call_that_is_deep_for_libcst_alone_becomes_a_refusal() -> None:
    with pytest.raises(Refused, match="LibCST"):
        call(f"f({' or '.join(['x'] * 3000)}, 2)").rewrite(drop=["b"])()


# strings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(1)", 'f(k="sum")'),
        ('x = "a"\nf(1)', 'x = "a"\nf(k="sum")'),
        ("x = 'a'\nf(1)", "x = 'a'\nf(k='sum')"),
        ('print(f"{f(1)}")', "print(f\"{f(k='sum')}\")"),
        ("print(f'{f(1)}')", "print(f'{f(k=\"sum\")}')"),
        ('print(F"{f(1):.3f}")', "print(F\"{f(k='sum'):.3f}\")"),
        ('print(rf"{f(1)}")', "print(rf\"{f(k='sum')}\")"),
        ("print(\"a\" f'{f(1)}')", 'print("a" f\'{f(k="sum")}\')'),
        ("print('a'\n      f\"{f(1)}\" 'b')", "print('a'\n      f\"{f(k='sum')}\" 'b')"),
        ('print(f"{x:{f(1)}}")', "print(f\"{x:{f(k='sum')}}\")"),
        ('print(f"""\n{f(1)}""")', 'print(f"""\n{f(k=\'sum\')}""")'),
        ("print(f\"{d['x']} {f(1)}\")", "print(f\"{d['x']} {f(k='sum')}\")"),
    ],
)
def test_a_new_string_has_the_quotes_of_the_file_or_those_that_an_f_string_leaves(text: str, expected: str) -> None:
    one = call(text)
    assert rewritten(one, ["a"], k=[one.quoted("sum")]) == expected


@pytest.mark.parametrize(
    "text",
    ["print(f\"{f'{f(1)}'}\")", "print(f'{f\"{f(1)}\"}')", "print(f'''{f\"{f(1)}\"}''')"],
)
def test_a_string_that_needs_a_third_kind_of_quotes_is_refused(text: str) -> None:
    one = call(text)
    with pytest.raises(Refused, match="f-string"):
        one.rewrite(drop=["a"], put={"k": [one.quoted("sum")]})
    assert rewritten(one, ["a"]) == text.replace("1", "")


def test_a_backslash_in_an_f_string_is_refused() -> None:
    with pytest.raises(Refused, match="f-string"):
        call('print(f"{f(1)}")').rewrite(put={"k": ["'\\n'"]})


@pytest.mark.parametrize(
    "field", ["f(1)=", "f(1) = ", "f(1)=!r", "f(1)=:>9", "(f(1))=", "g(f(1))=", "f(1) + 2 =", "[f(1)]="]
)
def test_a_call_whose_text_an_f_string_prints_is_refused(field: str) -> None:
    with pytest.raises(Refused, match="prints its text"):
        call(f'print(f"{{{field}}}")').rewrite(drop=["a"])


@pytest.mark.parametrize("field", ["f(1)!r", "f(1):=^9", "f(1) == 2", "g(f(1), k=2)", "(f(1))", "x[f(1)]"])
def test_a_call_whose_text_no_f_string_prints_is_rewritten(field: str) -> None:
    assert rewritten(call(f'print(f"x={{{field}}}=")'), ["a"]) == f'print(f"x={{{field.replace("f(1)", "f()")}}}=")'


# findings


def test_a_doubt_turns_every_fix_into_a_note() -> None:
    one = call("f(1)", doubt="it may be another")
    for verb in (one.safe_fix, one.unsafe_fix, one.display_fix):
        finding = verb("change it", Fix(()))
        assert (finding.applicability, finding.message, finding.build) == (
            Applicability.NOTE,
            "it may be another",
            None,
        )
    assert call("f(1)").safe_fix("change it", Fix(())).applicability is Applicability.SAFE


def test_the_evidence_says_what_the_name_means_and_where_it_is_bound() -> None:
    module = Module.of(Source("x.py", HEAD + "class L(NLLLoss): pass\nL(MARK)"))
    node = marked(module)
    one = Call("some-transform", module, node, callee(module.names, node), name="torch.nn.NLLLoss")
    assert one.report("look").evidence == (
        "`L` is torch.nn.NLLLoss",
        "class `L` (line 4) has no constructor of its own",
        "`L` is bound on line 4",
    )
    unknown = Call("some-transform", module, node, callee(module.names, node))
    assert unknown.report("look").evidence == ()


def test_long_evidence_is_cut() -> None:
    module = Module.of(Source("x.py", f"{'x' * 80}(2)"))
    found = Callee(Resolved(frozenset(["torch.g"])))
    one = Call("some-transform", module, module.names.calls[0], found, name="torch.g")
    assert one.evidence[0] == f"`{'x' * 57}...` is torch.g"


# the order of evaluation, and defaults


@pytest.mark.parametrize(
    ("text", "parameter", "keeps"),
    [
        ("f(1, 2)", "a", False),
        ("f(1, 2)", "b", True),
        ("f(1, k=2)", "a", True),
        ("f(a=1, k=2)", "a", True),
        ("f(a=1, **kw)", "a", True),
        ("f(a=1, *xs)", "a", False),
    ],
)
def test_a_place_is_kept_where_only_named_arguments_follow(text: str, parameter: str, keeps: bool) -> None:
    assert call(text).keeps_place(parameter) is keeps


@pytest.mark.parametrize(
    ("text", "passes"),
    [("f(x, y, k=z)", False), ("f(x, y, k=g())", True), ("f(g(), y)", False), ("f(x, k=(y := 1))", True)],
)
def test_code_that_runs_later_is_seen(text: str, passes: bool) -> None:
    module_call = next(c for c in [call(text)] if c.arguments)
    parameter = "b" if text == "f(g(), y)" else "a"
    assert module_call.passes_code(parameter) is passes


@pytest.mark.parametrize(
    ("text", "maybe"),
    [
        ("def g(x=None):\n    f(x)", True),
        ("def g(x, y=None):\n    f(x)", False),
        ("def g(x=True):\n    f(x)", False),
        ("def g(y=None, x=1):\n    f(x)", False),
        ("def g(*, y, x=None):\n    f(x)", True),
        ("def g(*, x, y=None):\n    f(x)", False),
        ("def g(x=None):\n    def h():\n        f(x)", True),
        ("def g(x=None):\n    def h(x=1):\n        f(x)", False),
        ("g = lambda x=None: f(x)", True),
        ("def g(x=None):\n    f(x.y)", False),
        ("f(x)", False),
    ],
)
def test_a_parameter_that_is_none_by_default_is_known(text: str, maybe: bool) -> None:
    assert call(text).may_be_none("a") is maybe


@pytest.mark.parametrize("value", ["self", "type(self)", "x"])
def test_super_with_a_name_that_is_not_the_first_parameter_is_no_instance(value: str) -> None:
    head = f"class L(NLLLoss):\n    def __init__(me):\n        super(L, {value}).__init__(MARK)"
    assert resolved(head) != "torch.nn.NLLLoss"
