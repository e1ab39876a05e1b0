"""Argument surgery: what a call's text becomes, to the byte, when arguments go and others come."""

import ast
import tokenize
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from torchmod.arguments import Argument, NewValue, Operand, bind, rewritten, take_apart
from torchmod.edits import apply
from torchmod.knowledge.signature import Signature
from torchmod.model import Edit, Refused
from torchmod.source import Source

SIGNATURE = Signature(("a", "b", "c", "d", "e", "k"), ("k",))


def parsed(text: str) -> ast.Call:
    call = ast.parse(f"({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    return call


def bound(text: str, signature: Signature = SIGNATURE) -> list[Argument]:
    return list(bind(parsed(text), signature))


def edits_of(text: str, drop: Iterable[str] = (), put: Mapping[str, NewValue] | None = None) -> tuple[Edit, ...]:
    return rewritten(text, bound(text), frozenset(drop), put or {})


def rewrite(text: str, drop: Iterable[str] = (), put: Mapping[str, NewValue] | None = None) -> str:
    new = apply(text, edits_of(text, drop, put))
    parsed(new)
    return new


# binding


def test_arguments_are_bound_by_place_and_by_name_in_the_order_of_the_source() -> None:
    found = bound("f(1, 2, k=3, z=4)")
    assert [(a.parameter, a.named) for a in found] == [("a", False), ("b", False), ("k", True), ("z", True)]


def test_nothing_after_a_star_has_a_known_place() -> None:
    found = bound("f(1, *xs, 2, c=3, *ys, d=4, **kw)")
    assert [a.parameter for a in found] == ["a", None, None, "c", None, "d", None]


def test_a_keyword_only_parameter_has_no_place() -> None:
    assert [a.parameter for a in bound("f(1, 2, 3, 4, 5, 6)")] == ["a", "b", "c", "d", "e", None]


def test_self_passed_by_hand_belongs_to_no_parameter() -> None:
    found = list(bind(parsed("Base.__init__(self, 1, b=2)"), SIGNATURE, before=1))
    assert [a.parameter for a in found] == [None, "a", "b"]


# dropping


@pytest.mark.parametrize(
    ("text", "drop", "expected"),
    [
        ("f(1, 2, 3)", "a", "f(b=2, c=3)"),
        ("f(1, 2, 3)", "b", "f(1, c=3)"),
        ("f(1, 2, 3)", "c", "f(1, 2)"),
        ("f(1, 2, 3)", "ac", "f(b=2)"),
        ("f(1, 2, 3)", "abc", "f()"),
        ("f(a=1, b=2, c=3)", "a", "f(b=2, c=3)"),
        ("f(a=1, b=2, c=3)", "b", "f(a=1, c=3)"),
        ("f(a=1, b=2, c=3)", "c", "f(a=1, b=2)"),
        ("f(a=1, b=2, c=3)", "abc", "f()"),
        ("f(1, c=3, b=2)", "b", "f(1, c=3)"),
        ("f(1)", "a", "f()"),
        ("f(1,)", "a", "f()"),
        ("f(1, 2,)", "b", "f(1,)"),
        ("f(1, 2,)", "a", "f(b=2,)"),
        ("f( 1 , 2 )", "a", "f( b=2 )"),
        ("f( 1 , 2 )", "b", "f( 1 )"),
        ("f(1,2)", "a", "f(b=2)"),
        ("f(1, (2), [3])", "a", "f(b=(2), c=[3])"),
        ("f (1, 2)", "a", "f (b=2)"),
        ("f(1)(2)[3](4, 5)", "a", "f(1)(2)[3](b=5)"),
        ("f(1, k=2)", "k", "f(1)"),
        ("f(1)", "z", "f(1)"),
        ("f()", "a", "f()"),
    ],
)
def test_dropping(text: str, drop: str, expected: str) -> None:
    assert rewrite(text, drop) == expected


@pytest.mark.parametrize(
    ("text", "drop", "expected"),
    [
        ("f(\n    1,\n    2,\n    3,\n)", "a", "f(\n    b=2,\n    c=3,\n)"),
        ("f(\n    1,\n    2,\n    3,\n)", "b", "f(\n    1,\n    c=3,\n)"),
        ("f(\n    1,\n    2,\n    3,\n)", "c", "f(\n    1,\n    2,\n)"),
        ("f(\n    1,\n    2\n)", "b", "f(\n    1\n)"),
        ("f(1,\n  2,\n  3)", "a", "f(b=2,\n  c=3)"),
        ("f(1,\n  2,\n  3)", "c", "f(1,\n  2)"),
        ("f(1, 2,\n  3)", "b", "f(1,\n  c=3)"),
        ("f(1,\n  2, 3)", "b", "f(1,\n  c=3)"),
        ("f(1\n  , 2\n  , 3\n  )", "b", "f(1\n  , c=3\n  )"),
        ("f(\n    1,\n\n    2,\n\n    3\n)", "b", "f(\n    1,\n\n    c=3\n)"),
        ("f(\n\t1,\n\t2,\n)", "a", "f(\n\tb=2,\n)"),
        ("f(\n    1, 2)", "ab", "f()"),
        ("f(1, \\\n  2)", "a", "f(b=2)"),
        ("f(1, \\\n  2)", "b", "f(1)"),
    ],
)
def test_dropping_leaves_no_empty_line_and_keeps_the_layout(text: str, drop: str, expected: str) -> None:
    assert rewrite(text, drop) == expected


@pytest.mark.parametrize(
    ("text", "drop", "expected"),
    [
        # a comment on the comma of what goes stays where it stood
        (
            "f(\n    1,  # one\n    2,  # two\n    3,  # three\n)",
            "b",
            "f(\n    1,  # one\n    # two\n    c=3,  # three\n)",
        ),
        ("f(\n    1,  # one\n    2,  # two\n)", "a", "f(\n    # one\n    b=2,  # two\n)"),
        ("f(\n    1,  # one\n    2,  # two\n)", "b", "f(\n    1,  # one\n    # two\n)"),
        ("f(\n    1,  # one\n    2  # two\n)", "b", "f(\n    1  # one\n    # two\n)"),
        ("f(\n    1,  # one\n    2,  # two\n)", "ab", "f(\n    # one\n    # two\n)"),
        # a comment on a line of its own
        ("f(\n    1,\n    # about b\n    2,\n    # about c\n    3,\n)", "b", None),
        ("f(\n    # about a\n    1,\n    2,\n)", "a", "f(\n    # about a\n    b=2,\n)"),
        ("f(\n    1,\n    # about b\n    2,\n)", "b", "f(\n    1,\n    # about b\n)"),
        ("f(\n    1,\n    2,\n    # the end\n)", "b", "f(\n    1,\n    # the end\n)"),
        # on the one line
        ("f(1, 2,  # two\n  3)", "b", "f(1,  # two\n  c=3)"),
        ("f(1,  # one\n  2)", "b", "f(1  # one\n  )"),
        ("f(1,  # one\n  2\n)", "b", "f(1  # one\n)"),
        ("f(1,  # one\n  2)", "a", "f(  # one\n  b=2)"),
        ("f(1,  # one\n  2)", "ab", "f(  # one\n  )"),
        ("f(  # head\n    1, 2)", "a", "f(  # head\n    b=2)"),
    ],
)
def test_a_comment_outlives_its_argument(text: str, drop: str, expected: str | None) -> None:
    new = rewrite(text, drop)
    assert expected is None or new == expected
    assert comments(new) == comments(text)


def test_comments_on_lines_of_their_own_meet_without_an_empty_line_between() -> None:
    text = "f(\n    1,\n    # about b\n    2,\n    # about c\n    3,\n)"
    assert rewrite(text, "b") == "f(\n    1,\n    # about b\n    # about c\n    c=3,\n)"


def test_a_comment_before_a_comma_outlives_the_comma() -> None:
    assert rewrite("f(1  # one\n  , 2)", "b") == "f(1  # one\n  )"
    assert rewrite("f(1  # one\n  , 2\n)", "b") == "f(1  # one\n)"
    assert rewrite("f(1  # one\n  , 2  # two\n  )", "b") == "f(1  # one\n  # two\n  )"
    assert rewrite("f(1  # one\n  , 2,)", "b") == "f(1  # one\n  ,)"
    assert rewrite("f(1  # one\n  , 2)", "", {"k": ["3"]}) == "f(1  # one\n  , 2, k=3)"


def test_a_backslash_is_never_glued_to_a_comment_or_left_before_a_blank() -> None:
    assert comments(rewrite("f(1,  # one\n2\\\n)", "ab")) == Counter(["# one"])
    assert comments(rewrite("f(1,  # one\\\n  2,\n # two\n  3)", "b")) == Counter(["# one\\", "# two"])
    assert rewrite("f(\\\nz=1, \n    # end\n  )", "z").endswith("# end\n  )")


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_line_ends_are_the_ones_that_were_there(newline: str) -> None:
    text = "f(\n    1,  # one\n    2,  # two\n    3\n)".replace("\n", newline)
    assert rewrite(text, "b") == "f(\n    1,  # one\n    # two\n    c=3\n)".replace("\n", newline)
    put = rewrite(text, "", {"k": ["4"]})
    assert put == "f(\n    1,  # one\n    2,  # two\n    3,\n    k=4\n)".replace("\n", newline)
    commented = "f(\n    1,\n    2,  # two\n)".replace("\n", newline)
    put = rewrite(commented, "", {"k": ["4"]})
    assert put == "f(\n    1,\n    2,  # two\n    k=4,\n)".replace("\n", newline)


def test_mixed_line_ends_stay_mixed() -> None:
    assert rewrite("f(1,\r\n  2,\n  3)", "a") == "f(b=2,\n  c=3)"


# naming what follows


def test_values_keep_their_text_when_they_are_named() -> None:
    text = "f(1, (2), [3,\n  4], lambda: 5)"
    assert rewrite(text, "a") == "f(b=(2), c=[3,\n  4], d=lambda: 5)"


def test_a_walrus_gets_brackets_when_it_is_named() -> None:
    assert rewrite("f(1, x := 2)", "a") == "f(b=(x := 2))"
    assert rewrite("f(1, (x := 2))", "a") == "f(b=(x := 2))"


def test_what_follows_a_place_that_is_filled_again_stays_unnamed() -> None:
    assert rewrite("f(1, 2, 3)", "b", {"b": ["9"]}) == "f(1, 9, 3)"
    assert rewrite("f(1, 2, 3)", "", {"b": ["9"]}) == "f(1, 9, 3)"


@pytest.mark.parametrize("text", ["f(1, *xs)", "f(1, *xs, 2)", "f(1, 2, 3, 4, 5, 6)"])
def test_what_cannot_be_named_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="cannot be named"):
        rewrite(text, "a")


def test_stars_stay_when_only_named_arguments_go() -> None:
    assert rewrite("f(*xs, a=1, **kw)", "a") == "f(*xs, **kw)"
    assert rewrite("f(a=1, *xs, **kw)", "a") == "f(*xs, **kw)"
    assert rewrite("f(*xs, **kw, a=1)", "a") == "f(*xs, **kw)"


# putting


@pytest.mark.parametrize(
    ("text", "drop", "expected"),
    [
        ("f()", "", "f(k=9)"),
        ("f( )", "", "f(k=9 )"),
        ("f(1)", "", "f(1, k=9)"),
        ("f(1,)", "", "f(1, k=9,)"),
        ("f(1)", "a", "f(k=9)"),
        ("f(1, 2)", "a", "f(b=2, k=9)"),
        ("f(1, 2)", "b", "f(1, k=9)"),
        ("f(1, 2, c=3)", "b", "f(1, k=9, c=3)"),
        ("f(1, 2, c=3)", "bc", "f(1, k=9)"),
        ("f(a=1, b=2)", "a", "f(k=9, b=2)"),
        ("f(a = 1, b = 2)", "a", "f(k = 9, b = 2)"),
        ("f(a=1, b=2)", "b", "f(a=1, k=9)"),
        ("f(1, k = 2)", "", "f(1, k = 9)"),
        ("f(1, k=(2))", "", "f(1, k=9)"),
        ("f((1))", "a", "f(k=9)"),
        ("f(*xs)", "", "f(*xs, k=9)"),
        ("f(**kw)", "", "f(**kw, k=9)"),
        ("f(a=1, **kw)", "a", "f(k=9, **kw)"),
        ("f(a=1, *xs)", "a", "f(*xs, k=9)"),
        ("f(\n    1,\n    2,\n)", "", "f(\n    1,\n    2,\n    k=9,\n)"),
        ("f(\n    1,\n    2\n)", "", "f(\n    1,\n    2,\n    k=9\n)"),
        ("f(1,\n  2)", "", "f(1,\n  2,\n  k=9)"),
        ("f(\n    1,  # one\n)", "", "f(\n    1,  # one\n    k=9,\n)"),
        ("f(\n    1  # one\n)", "", "f(\n    1,  # one\n    k=9\n)"),
        ("f(1  # one\n)", "", "f(1,  # one\nk=9)"),
        ("f(\n    1,\n    # the end\n)", "", "f(\n    1,\n    # the end\n    k=9,\n)"),
        ("f(\n    # nothing yet\n)", "", "f(k=9\n    # nothing yet\n)"),
        ("f(\n    1,  # one\n    2,  # two\n)", "b", "f(\n    1,  # one\n    k=9,  # two\n)"),
        ("f(\n    1,  # one\n    2,  # two\n)", "a", "f(\n    # one\n    b=2,  # two\n    k=9,\n)"),
        ("f(\n    a=1,  # one\n    b=2,  # two\n)", "ab", "f(\n    k=9,  # one\n    # two\n)"),
    ],
)
def test_putting_a_new_argument(text: str, drop: str, expected: str) -> None:
    assert rewrite(text, drop, {"k": ["9"]}) == expected


def test_several_new_arguments_come_in_the_order_given() -> None:
    assert rewrite("f(1, 2)", "b", {"d": ["8"], "c": ["9"]}) == "f(1, d=8, c=9)"
    assert rewrite("f(\n    1,  # one\n)", "", {"d": ["8"], "c": ["9"]}) == "f(\n    1,  # one\n    d=8,\n    c=9,\n)"
    assert rewrite("f(c=1)", "", {"d": ["8"], "c": ["9"]}) == "f(c=9, d=8)"


def test_a_value_given_by_place_is_replaced_in_its_place() -> None:
    assert rewrite("f(1, 2)", "", {"b": ["9"]}) == "f(1, 9)"
    assert rewrite("f(1, 2, 3)", "a", {"c": ["9"]}) == "f(b=2, c=9)"


# operands


def test_an_operand_is_the_old_text_and_not_part_of_an_edit() -> None:
    text = "f(1, b=x  +  y)"
    new = {"k": ["not ", Operand("b", brackets=True)]}
    assert rewrite(text, "b", new) == "f(1, k=not (x  +  y))"
    assert [(text[e.start : e.end], e.text) for e in edits_of(text, "b", new)] == [("b", "k"), ("", "not ("), ("", ")")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x", "(x)"),
        ("(x)", "(x)"),
        ("((x))", "((x))"),
        ("(x or y)", "(x or y)"),
        ("(x) or (y)", "((x) or (y))"),
        ("(x)(y)", "((x)(y))"),
        ("(x).y", "((x).y)"),
        ("()", "()"),
        ("(x if y else z)", "(x if y else z)"),
    ],
)
def test_brackets_are_added_unless_they_are_round_the_whole_value(value: str, expected: str) -> None:
    assert rewrite(f"f(b={value})", "b", {"k": ["not ", Operand("b", brackets=True)]}) == f"f(k=not {expected})"


def test_operands_may_change_their_order_and_appear_twice() -> None:
    put: NewValue = [Operand("b"), " if ", Operand("a"), " else ", Operand("b")]
    assert rewrite("f(a=x, b=y)", "ab", {"k": put}) == "f(k=y if x else y)"


def test_an_operand_over_several_lines_keeps_them() -> None:
    put: NewValue = ["1 if ", Operand("b"), " else 2"]
    assert rewrite("f(b=x or\n    y)", "b", {"k": put}) == "f(k=1 if x or\n    y else 2)"


# what is refused


@pytest.mark.parametrize(
    "text",
    ["f(\n    a=x  # in\n    or y,\n)", "f(a=(1,  # in\n  2), b=3)", "f(a=1  # before the comma\n  , b=2)"],
)
@pytest.mark.parametrize("put", [{}, {"k": ["9"]}, {"a": ["9"]}])
def test_a_comment_inside_what_would_go_is_refused(text: str, put: dict[str, NewValue]) -> None:
    with pytest.raises(Refused, match="comment inside"):
        rewrite(text, "a", put)


def test_a_comment_inside_what_stays_is_no_hindrance() -> None:
    text = "f(1, (x  # in\n  or y), 3)"
    assert rewrite(text, "a") == "f(b=(x  # in\n  or y), c=3)"


@pytest.mark.parametrize(("drop", "put"), [("a", {}), ("", {"k": ["9"]}), ("a", {"k": ["9"]}), ("", {"a": ["9"]})])
def test_a_bare_generator_is_refused(drop: str, put: dict[str, NewValue]) -> None:
    with pytest.raises(Refused, match="generator"):
        rewrite("f(x for x in y)", drop, put)


def test_a_generator_in_brackets_is_an_argument_like_others() -> None:
    assert rewrite("f((x for x in y))", "", {"k": ["9"]}) == "f((x for x in y), k=9)"
    assert rewrite("f(1, (x for x in y))", "a") == "f(b=(x for x in y))"
    assert rewrite("f((x for x in y), 2)", "a") == "f(b=2)"


@pytest.mark.parametrize("text", ["f(1, a=2)", "f(1, 2, b=3, a=4)"])
def test_two_values_for_a_parameter_are_refused(text: str) -> None:
    with pytest.raises(Refused, match="two values"):
        rewrite(text, "a")


def test_a_call_that_is_deep_for_libcst_alone_is_refused() -> None:
    for value in (" or ".join(["x"] * 3000), " ".join(["''"] * 1000)):
        with pytest.raises(Refused, match="LibCST"):
            rewrite(f"f({value}, 2)", "b")


def test_what_is_no_call_is_refused() -> None:
    for text in ("x", "f(1).y", "(f(1))", "f(1) + 2", "f(1", "[1]"):
        with pytest.raises(Refused):
            take_apart(text)


def test_arguments_that_are_counted_differently_are_refused() -> None:
    with pytest.raises(Refused, match="differently"):
        rewritten("f(1, 2)", bound("f(1)"), frozenset("a"), {})


def test_a_keyword_written_in_other_letters_is_replaced_whole() -> None:
    assert rewrite("f(ﬁ=1)", ["fi"], {"k": ["9"]}) == "f(k=9)"


# properties


VALUES = (
    "x",
    "(x)",
    "((x))",
    "1",
    "-1",
    "not z",
    "u or v",
    "(u) or (v)",
    "u if v else w",
    "lambda q: q",
    "(t := 1)",
    "(yield)",
    "(x for x in y)",
    "g(x, y)",
    "g(a=1,  # deep\n  b=2,)",
    "[1,\n   2]",
    "{**d}",
    "()",
    "(1,)",
    "x.y[0]",
    "'s, t)'",
    '"h # t"',
    "'''m\n # l'''",
    "f'{x}, {y!r}'",
    "m  # in\n + n",
    "(m  # in\n)",
)
GAPS = (
    "",
    " ",
    "  ",
    "\t",
    "\f",
    "\n",
    "\n    ",
    "\n\n\t",
    "\\\n",
    "  # c\n",
    "# d\n  ",
    "\n    # e\n    ",
    "  # f\\\n",
)
FUNCTIONS = ("f", "a.b", "(f)", "f(1)(2)", "g(  # head\n)", "a[0].b", "f\\\n", "f ")
gaps = st.lists(st.sampled_from(GAPS), max_size=3).map("".join)
values = st.sampled_from(VALUES)


class Rewriting(NamedTuple):
    text: str
    dropped: frozenset[str]
    put: dict[str, NewValue]


@st.composite
def written_arguments(draw: st.DrawFn) -> list[str]:
    """Arguments in an order that Python allows."""
    by_place = draw(st.lists(st.one_of(values, st.just("t := 1")), max_size=4))
    names = [name for name in (*SIGNATURE.parameters, "z") if name not in SIGNATURE.positional[: len(by_place)]]
    named = draw(st.lists(st.sampled_from(names), unique=True, max_size=3))
    found = [f"{name}{draw(st.sampled_from(['=', ' = ', '= ']))}{draw(values)}" for name in named]
    if draw(st.integers(0, 3)) == 0:
        found.insert(draw(st.integers(0, len(found))), draw(st.sampled_from(["*xs", "*[*a]", "*(xs)"])))
    if draw(st.integers(0, 3)) == 0:
        found.append(draw(st.sampled_from(["**kw", "**dict(a=1)"])))
    return [*by_place, *found]


@st.composite
def rewritings(draw: st.DrawFn) -> Rewriting:
    written = draw(written_arguments())
    text = draw(st.sampled_from(FUNCTIONS)) + "(" + draw(gaps)
    for index, argument in enumerate(written):
        comma = "," if index < len(written) - 1 or draw(st.booleans()) else ""
        text += argument + draw(gaps) + comma + (draw(gaps) if comma else "")
    text += ")"
    if written == ["(x for x in y)"] and draw(st.booleans()):
        text = text.replace("((x for x in y)", "(x for x in y", 1).replace(",", "")
    have = [argument.parameter for argument in bound(text) if argument.parameter]
    dropped = frozenset(draw(st.lists(st.sampled_from(have), unique=True))) if have else frozenset()
    put: dict[str, NewValue] = {}
    for name in draw(st.lists(st.sampled_from(["a", "b", "e", "k"]), unique=True, max_size=2)):
        operand = Operand(draw(st.sampled_from(have)), brackets=True) if have else "(9)"
        put[name] = draw(st.sampled_from([["9"], ["'q'"], ["not ", operand], ["1 if ", operand, " else 2"]]))
    return Rewriting(text.replace("\n", draw(st.sampled_from(["\n", "\r\n", "\r"]))), dropped, put)


def comments(text: str) -> Counter[str]:
    tokens = Source("", f"({text}\n)").tokens()
    return Counter(token.string.rstrip() for token in tokens if token.type == tokenize.COMMENT)


def meaning(arguments: Iterable[Argument]) -> tuple[dict[str, str], list[str]]:
    """Values by parameter, and those that belong to none."""
    known = {a.parameter: ast.dump(a.value) for a in arguments if a.parameter}
    return known, [ast.dump(a.value) for a in arguments if not a.parameter]


def value_of(pieces: NewValue, arguments: Iterable[Argument]) -> str:
    old = {a.parameter: a.value for a in arguments}
    text = "".join(p if isinstance(p, str) else f"({ast.unparse(old[p.parameter])})" for p in pieces)
    return ast.dump(ast.parse(text, mode="eval").body)


@settings(derandomize=True, database=None, deadline=None, max_examples=800)
@given(rewritings())
def test_a_rewrite_is_refused_or_right(case: Rewriting) -> None:
    text, dropped, put = case
    old = bound(text)
    try:
        new = rewrite(text, dropped, put)
    except Refused as refusal:
        event(str(refusal))
        return
    event("rewritten")
    known, hidden = meaning(old)
    for parameter in dropped:
        del known[parameter]
    known |= {name: value_of(pieces, old) for name, pieces in put.items()}
    assert meaning(bound(new)) == (known, hidden)
    assert ast.dump(parsed(new).func) == ast.dump(parsed(text).func)
    assert not comments(text) - comments(new)


@settings(derandomize=True, database=None, deadline=None, max_examples=300)
@given(rewritings())
def test_edits_stay_between_the_brackets_and_make_what_is_wanted_at_once(case: Rewriting) -> None:
    text, dropped, put = case
    try:
        edits = edits_of(text, dropped, put)
    except Refused:
        return
    assert all(take_apart(text).opening <= edit.start and edit.end < len(text) for edit in edits)
    assert all(one.end < other.start for one, other in pairwise(edits))
    assert dropped or put or not edits
    new = apply(text, edits)
    if all(isinstance(piece, str) for pieces in put.values() for piece in pieces):
        assert rewrite(new, dropped - put.keys(), put) == new
