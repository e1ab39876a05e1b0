"""Each guard, made to fail by a wrong edit and passed by right ones.

Texts show their edits: ``«old|new»`` is replaced, ``«|new»`` inserted, ``«old|»`` deleted.
"""

import ast
import re
import tokenize
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from torchmod.edits import apply
from torchmod.guards import check_python, check_text
from torchmod.imports import preludes
from torchmod.model import Edit, Need, Span, Unreadable, Wrapper
from torchmod.names import Names
from torchmod.regions import start_of, wrap
from torchmod.source import Source
from torchmod.trees import GuardError, Shift, same

HEAD = "import torch\na = b = c = d = f = g = x = y = torch\n"


def shown(text: str) -> tuple[str, list[Edit]]:
    """The old text and the edits that a text shows."""
    old, edits = "", []
    for piece in re.split(r"(«[^»]*»)", text):
        if piece.startswith("«"):
            gone, new = piece[1:-1].rsplit("|", 1)
            edits.append(Edit(len(old), len(old) + len(gone), new))
            old += gone
        else:
            old += piece
    return old, edits


def check(old: Source, edits: Sequence[Edit]) -> str:
    """What the engine does with edits; the new text."""
    new = old.revised(apply(old.text, edits))
    try:
        tree = new.parse()
    except Unreadable as error:
        raise GuardError(f"it does not parse: {error}") from None
    check_python(old, Names(old.parse()), new, Names(tree), edits)
    return new.text


def made(text: str, head: str = HEAD) -> str:
    old, edits = shown(head + text)
    return check(Source("x.py", old), edits)


def refused(text: str, match: str, head: str = HEAD) -> None:
    with pytest.raises(GuardError, match=match):
        made(text, head)


# the tree


def test_a_statement_is_not_moved_out_of_its_block() -> None:
    refused("if a:\n«    b = 2\n|b = 2\n»    c = 1\n", "nested too deeply|does not parse|another block")
    refused("if a:\n    c = 1\n«    b = 2\n|b = 2\n»", "another block")
    assert made("if a:\n    c = 1\n«    b = 2\n|    b = 3\n    d = 4\n»").endswith("d = 4\n")


def test_brackets_that_are_not_needed_may_go() -> None:
    assert made("f(«(|»a«)|», «(|»b + c«)|»)").endswith("f(a, b + c)")


@pytest.mark.parametrize(
    "text",
    [
        "x = «(torch.div(a, b))|a // b» ** 2",
        "x = «(|»a + b«)|» * c",
        "x = -«(|»a - b«)|»",
        "x = not «(|»a or b«)|»",
        "x = «(|»lambda: a«)|»()",
        "x = «torch.div(|»a«, | // »b«)|» ** 2",
        "x = «torch.div(a, b)|a // b» ** 2",
        "x = 2 ** «torch.div(|»a«, | // »b«)|»",
        "x = -«torch.div(|»a«, | // »b«)|»",
        "x = -«torch.div(a, b)|a // b»",
        "x = c // «torch.div(|»a«, | // »b«)|»",
        "x = c//«torch.div(a, b)|a // b»",
        "x = «torch.div(|»a«, | // »b«)|».item()",
        "x = «torch.div(|»a«, | // »b«)|»[0]",
        "x = «torch.div(|»a«, | // »b«)|»(c)",
        "x = «torch.div(|»a + 1«, | // »b«)|»",
        "x = «torch.div(|»a«, | // »b + 1«)|»",
        "x = «torch.div(|»a if c else d«, | // »b«)|»",
        "x = «torch.add(|»a«, | + »b«)|» * c",
        "x = not «f(a)|a or b»",
        "x = «f(a)|a if b else c» or d",
        "x = c or «f(a)|a if b else c»",
        "x = «f(a)|a < b» < c",
        "x = a < «f(a)|b < c»",
        "x = «a|a + 1» * b",
        "x = b - «a|c - d»",
        "x = «a|b if c else d» if x else y",
        "x = «a|lambda: b»(c)",
        "x = «a|-b» ** 2",
        "x = await_ = «a|b or c» and d",
        "x = a - «b|d» «-|**» c",
        "x = a-«b|d»«- |**»c",
        "x = a - «b|d»« - c| ** 2»",
        "x = a - f(«b|d»)« - c| ** 2»",
        "x = a - «b|d» * c« - d| ** 2»",
        "x = a - «b|d»«- c|[0] ** 2»",
    ],
)
def test_an_edit_must_not_change_how_what_is_round_it_is_read(text: str) -> None:
    refused(text, "must not touch")


@pytest.mark.parametrize(
    "text",
    [
        "x = «torch.div(|»a«, | // »b«)|»",
        "x = «torch.div|»(a«, | // »b) ** 2",
        "x = («torch.div(|»a«, | // »b«)|») ** 2",
        "x = «torch.div(a, b)|(a // b)» ** 2",
        "x = «torch.div(|»(a + 1)«, | // »b«)|»",
        "x = «torch.div(|»a«, | // »b«)|» + c",
        "x = c + «torch.div(|»a«, | // »b«)|»",
        "x = «torch.div(|»a«, | // »b«)|» // c",
        "x = f(«torch.div(|»a«, | // »b«)|», k=«torch.div(|»c«, | // »d«)|»)",
        "x = not «f(a)|a < b»",
        "x = «a|b + 1» + c",
        "x = «a|b or c» or d",
        "x = «a|b»",
        "x = [«a|*b»]",
        "x = f(«a|b, c»)",
        "x = f(«a|k=b»)",
        "x = f(a«, b|»)",
        "x = f(«a, |»b)",
        "x = f(a«|, k=b»)",
        "x = f(«|»a«|.item()»)",
        "x = a«|.item()» + b",
        "x = a + b«|.item()»",
        "x = a.data«[0]|.sum()»",
        "x = a«.data[0]|.item()» + 1",
        "x = a«.data.cpu()[0]|.item()» ** 2",
        "x = f(«|not »a, b)",
        "x = f(«a|k»=«|1 if »b«, c=| else 2 if »d«| else 3»)",
        "x = f(«|*»a, b)",
        "«|y = »x",
        "x «+=|= x +» 1",
        "«x = |»f(a)",
        "x: «int|float» = 1",
        "for x in «range(|list(range(»3)«|)»: pass",
        "def h(x«|, y=None»): return x",
        "def h(«|*, »k=1): return k",
        "class K(«torch.Tensor|torch.nn.Module»): pass",
        "with «torch|torch.no_grad()» as x: pass",
        "try: pass\nexcept «OSError|(OSError, ValueError)» as e: pass",
        "x = [«a|b» for a in c if «a|d»]",
        "x = {a: «b|c», **«d|f(d)»}",
        "x = lambda a: «a|b»",
        "match x:\n    case [«1|2», c] if «c|d»: pass",
        "x = a[«b|b, c»]",
    ],
)
def test_a_right_edit_passes(text: str) -> None:
    made(text)


def test_two_edits_of_one_statement_are_checked_each() -> None:
    made("x = f(«a|b») + g(«c|d»)")
    refused("x = f(«a|b») + g(«c|d», «torch.div(|»a«, | // »b«)|» ** 2)", "must not touch")
    refused("«|import os\n»x = «torch.div(|»a«, | // »b«)|» ** 2", "must not touch")


def test_an_edit_in_an_edited_call_is_checked() -> None:
    made("x = f(g(«a|k=a»), «b|k=b»)")
    made("x = «f|g»(g(«a|b»), «b, |»c)")
    refused("x = «f|g»(«torch.div(|»a«, | // »b«)|» ** 2, «b, |»c)", "must not touch")


@pytest.mark.parametrize(
    "text",
    ["x = f(a«, |»b)", "x = not« |»a", "x = a« |»if« |»b else c", "x = f(«|my»a)", "x = f(a«|s»)", "x = 1«|0»"],
)
def test_an_edit_must_not_run_into_the_word_beside_it(text: str) -> None:
    refused(text, "the word beside it|does not parse")


def test_an_edit_may_change_part_of_a_word() -> None:
    made("abc = 1\nx = ab«cd|c»", head="abcd = 1\n")
    made("abc = f = 1\nx = f(ab«cd|c», «2, |»3)", head="abcd = 1\n")


@pytest.mark.parametrize("text", ["x = «|r»'a'", "x = 'a'«|'b'»", "x = «|-»1«|» ** 2 if «|b»'a' else 0"])
def test_what_is_inserted_must_not_change_the_string_beside_it(text: str) -> None:
    refused(text, "must not touch")


@pytest.mark.parametrize(
    "text",
    [
        "x = a«\n|»-b",
        "x = a«\n|»(b)",
        "x = a«\n|»[b]",
        "if a:\n    f()\n«|    »g()",
        "if a:\n    x = f(\n«|\n»    )\n«|    »g()",
        "«|import os\n»if a:\n    f()\n«|    »g()",
        "def h():\n    return«|\n    »a",
        "x = a«|\n»-b",
        "x = f(a)«|.item() #» + b",
        "f()«|; x = '''»\ng()\ny = 1  # '''",
    ],
)
def test_statements_must_not_be_joined_split_or_swallowed(text: str) -> None:
    refused(text, "must not touch|lost")


@pytest.mark.parametrize(
    "text",
    [
        "def h():\n    f()\n«|if c:\n»    g()",
        "def h():\n    f()\n«|def i():\n»    g()",
        "def h():\n    f()\n«|class K:\n    x = 1\n»    g()",
        "if a:\n    f()\n«|else:\n»    g()",
        "for i in a:\n    f()\n«|while c:\n»    g()",
        "try:\n    f()\n«|finally:\n»    g()\nfinally:\n    pass",
        "«|if c:\n    »f()\ng()",
        "«|class K:\n    »f()",
    ],
)
def test_a_statement_stays_in_its_block(text: str) -> None:
    refused(text, "must not touch|does not parse")


@pytest.mark.parametrize(
    "text",
    [
        "«|y = 1\n»f()",
        "f()«|\ny = 1»",
        "f()«|; y = 1»",
        "if a:\n    «|y = 1\n    »f()",
        "if a:\n    f()«|\n    y = 1»\ng()",
        "if a: «|y = 1; »f()",
        "«f()\n|»g()",
        "f()«\ng()|»",
        "f()«; g()|»",
        "if a:\n    f()\n«    g()\n|»g()",
        "«f()|if a:\n    f()»\ng()",
        "match a:\n    case 1:\n        «|y = 1\n        »f()",
        "try:\n    f()\nexcept OSError:\n    «|y = 1\n    »g()",
        "while a:\n    f()\nelse:\n    «|y = 1\n    »g()",
    ],
)
def test_statements_may_come_and_go(text: str) -> None:
    made(text)


def test_white_space_alone_may_move_things() -> None:
    made("x = f(a,«|\n      »b)\n«|\n»y = 1")
    made("x = f(a,«  | »b)", head=HEAD)


# decorators, strings


@pytest.mark.parametrize(
    "text",
    [
        "«|@torch.no_grad()\n»def h(): pass",
        "«|@torch.no_grad()\n»@f\ndef h(): pass",
        "«@torch.no_grad()\n|»def h(): pass",
        "«@torch.no_grad()\n|»@f\nclass K: pass",
        "@«torch.no_grad()|torch.inference_mode()»\ndef h(): pass",
        "@f(«a|b»)\n@g(«c|d»)\ndef h(x=«1|2»): return «x|a»",
        "class K:\n    «|@f\n    »@g\n    def h(self): pass",
        "@(\n    «a|b»\n)\nclass K: pass",
        "@«a|b»\nasync def h(): pass",
    ],
)
def test_edits_of_decorators_pass(text: str) -> None:
    made(text)


def test_edits_of_decorators_are_checked() -> None:
    refused("@«torch.div(|»a«, | // »b«)|» ** 2\ndef h(): pass", "must not touch")
    refused("«@f\n|\n@g\n»def h(): pass\nx = «torch.div(|»a«, | // »b«)|» ** 2", "must not touch")


@pytest.mark.parametrize(
    "text",
    [
        'x = f"{«a|b»}"',
        'x = f"{a} {f(«a|k=a»)!r:>{«b|c»}} {b}"',
        "x = f\"{f(«a|'s'»)}\" f'{a}' \"b\"",
        'x = f"""\n{«a|b»}\n{c}"""',
        'x = f(«f"{a}"|b»)',
        'x = f(«f"{a}", |»b)',
        "x = «f'{a}'|f'{b}'»",
    ],
)
def test_edits_of_f_strings_pass(text: str) -> None:
    made(text)


@pytest.mark.parametrize(
    "text",
    [
        'x = f"{«torch.div(|»a«, | // »b«)|» ** 2}"',
        'x = f"{a:{«torch.div(|»a«, | // »b«)|» ** 2}}"',
        'x = f"{«a|b!r»}"',
        'x = f"{«a|{1}»}"',
    ],
)
def test_edits_of_f_strings_are_checked(text: str) -> None:
    refused(text, "must not touch")


# whole edits of the core


def test_a_needed_import_and_an_edit_of_the_same_line_pass() -> None:
    old, edits = shown("x = 1\n«|y = »x«|.item()»\n")
    source = Source("x.py", old)
    needs = [*preludes(source, source.parse(), [Need("import os")]), *edits]
    check(source, needs)
    made("«|import os\nx = »x«.cuda()|.to(os)»", head="x = 1\n")


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\nfor i in a:\n    b(i)\nc = 2\n",
        "def h():\n    x = '''\n  s\n'''\n    return x  # c\n",
        "class K:\n\n    @f\n    def h(self):\n        pass\n\n    y = 1\n",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_region_under_with_passes(text: str, newline: str) -> None:
    source = Source("x.py", (HEAD + text).replace("\n", newline))
    names = Names(source.parse())
    blocks = [names.tree.body, *(n.body for n in names.tree.body if isinstance(n, ast.For | ast.FunctionDef))]
    for block in blocks:
        for first in range(len(block)):
            edits, _ = wrap(source, names, block[first], block[-1], "with torch.no_grad():")
            check(source, edits)


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("«|with a:\n    »f()\n«|    »g()\n", "f()"),
        ("«|with a:\n    »f()\n«|    »g()\nx\n", "f()\ng()\nx"),
        ("f()\n«|with a:\n    »g()\n", "f()\ng()"),
        ("«|with b:\n    »f()\n", "f()"),
        ("«|with a: pass\n»f()\n", "f()"),
    ],
)
def test_a_header_over_other_statements_than_the_chosen_ones_is_refused(text: str, region: str) -> None:
    old_text, edits = shown(HEAD + text)
    old, new = Source("x.py", old_text), Source("x.py", apply(old_text, edits))
    names, at = Names(old.parse()), old_text.index(region, len(HEAD))
    wrapper = Wrapper("with a:", Span(at, at + len(region)))
    with pytest.raises(GuardError, match="statements that it was meant for"):
        check_python(old, names, new, Names(new.parse()), edits, wrappers=[wrapper])


def test_a_region_that_swallows_a_string_is_refused() -> None:
    refused('«|with a:\n    »x = """\n«|    »s"""', "must not touch")


# names


def test_a_name_that_is_not_bound_is_refused() -> None:
    refused("f(«a|device»)", "`device`, which is not defined")
    refused("f(«1|os.path»)", "`os`, which is not defined")
    refused("def h(p): pass\nx = «1|p»", "`p`, which is not defined")


def test_a_name_that_is_bound_passes() -> None:
    made("f(«1|len»)")
    made("f(«1|a»)")
    made("def h(p):\n    return «1|p»")
    made("«|import os\n»f(«1|os»)", head="f = 1\n")
    made("«|import os\n»x = 1", head="")


def test_a_name_that_was_not_bound_before_is_no_reason_to_refuse() -> None:
    made("f(unknown, «1|2»)")
    made("f(unknown, «1|unknown»)")


def test_a_binding_that_is_still_used_must_not_go() -> None:
    refused("«import os\n|»f(os)", "`os`, which is not defined")
    refused("import os«, sys|»\nf(os, sys)", "`sys`, which is not defined")
    made("import os«, sys|»\nf(os)")


# comments


@pytest.mark.parametrize(
    "text",
    [
        "f(1,«  # one\n  2|2»)",
        "f()«  # one|»",
        "«# one\n|»f()",
        "f()  # «one|two»",
        "f()  # one«|\n»two",
        "f()  «|# »# one",
        "«|'''»\n# one\n«|'''»\nf()",
    ],
)
def test_a_lost_comment_is_refused(text: str) -> None:
    refused(text, "would be lost|must not touch|does not parse")


@pytest.mark.parametrize(
    "text",
    [
        "f(1,  # one\n  «2|3»)  # two",
        "f(«'#'|'a'»)",
        "f(1,  «# one\n  2|3,  # one\n  2»)",
        "f()«|  # new»",
        "f('''\n# none\n«a|b»''')",
        "f()«  # one  |  # one»",
    ],
)
def test_a_kept_comment_passes(text: str) -> None:
    made(text)


def test_a_comment_that_stands_twice_must_stay_twice() -> None:
    refused("f()  # one\ng()«  # one|»", "would be lost")


# the compiler


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("f(k=1«|, k=2»)", "repeated"),
        ("«|import os\n»from __future__ import division\n", "__future__"),
        ("def h():\n    return 1\n«|return 2\n»", "outside function"),
        ("def h(p«|, p»): pass", "duplicate"),
        ("for i in x: pass\n«|break\n»", "outside loop"),
    ],
)
def test_what_the_compiler_refuses_is_refused(text: str, match: str) -> None:
    refused(text, match, head="")


def test_a_file_that_never_compiled_may_be_edited() -> None:
    made("return f(«a|b»)")


# the text


def test_the_text_outside_the_edits_must_be_the_old_one() -> None:
    old = Source("x.py", "f(1)\ng(2)\n")
    with pytest.raises(GuardError, match="outside the edits"):
        check_text(old, old.revised("f(3)\ng(4)\n"), [Edit(2, 3, "3")])
    check_text(old, old.revised("f(3)\ng(2)\n"), [Edit(2, 3, "3")])


@pytest.mark.parametrize("match", ["line ends"])
@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("f()\r\ng()\r\n", Edit(5, 5, "h()\n")),
        ("f()\ng()\n", Edit(4, 4, "h()\r\n")),
        ("f()\ng()\n", Edit(4, 4, "h()\r")),
        ("f()\rg()\r", Edit(4, 4, "h()\n")),
        ("f()\rg()\r", Edit(4, 4, "h()\r\n")),
        ("f()\r\ng()\r\n", Edit(4, 5, "")),
        ("f()\r\ng()\r\n", Edit(3, 4, "")),
        ("f()\r\ng()\n", Edit(5, 5, "h()\r")),
    ],
)
def test_line_ends_must_be_the_files_own(text: str, edit: Edit, match: str) -> None:
    with pytest.raises(GuardError, match=match):
        check(Source("x.py", text), [edit])


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_the_files_own_line_ends_pass(newline: str) -> None:
    check(Source("x.py", f"f = 1{newline}f(){newline}"), [Edit(5, 5, f"{newline}f()")])
    check(Source("x.py", "f = 1"), [Edit(5, 5, f"{newline}f()")])


def test_the_final_line_end_is_neither_lost_nor_added() -> None:
    for text, edit in (("f = 1\n", Edit(5, 6, "")), ("f = 1", Edit(5, 5, "\n")), ("f = 1\ng = 2", Edit(5, 11, "\n"))):
        with pytest.raises(GuardError, match="at the end of the file"):
            check(Source("x.py", text), [edit])
    check(Source("x.py", "f = 1\ng = 2\n"), [Edit(0, 12, "")])
    check(Source("x.py", ""), [Edit(0, 0, "import os\n")])
    check(Source("x.py", ""), [Edit(0, 0, "import os")])


def test_what_the_encoding_has_no_place_for_is_refused() -> None:
    latin = Source.decode("x.py", "# coding: latin-1\nx = 'é'\n".encode("latin-1"))
    with pytest.raises(GuardError, match="cannot be written"):
        check(latin, [Edit(23, 24, "€")])
    assert "ü" in check(latin, [Edit(23, 24, "ü")])
    edit = Edit(5, 6, "\ud800")
    with pytest.raises(GuardError, match="cannot be written"):
        check_text(Source("x.py", "x = 'é'\n"), Source("x.py", "x = '\ud800'\n"), [edit])


def test_the_file_must_still_be_read_in_its_encoding() -> None:
    latin = Source.decode("x.py", "# coding: latin-1\nx = 'é'\n".encode("latin-1"))
    with pytest.raises(GuardError, match=r"cannot be written|would be read"):
        check(latin, [Edit(0, 0, "import os\nimport sys\n")])
    with pytest.raises(GuardError, match="would be read as iso-8859-1"):
        check(Source("x.py", "x = 'é'\n"), [Edit(0, 0, "# coding: latin-1\n")])


def test_a_text_that_is_not_python_has_the_guards_of_texts() -> None:
    old = Source("run.sh", "python -m torch.distributed.launch a.py\r\n")
    edit = Edit(10, 34, "torch.distributed.run")
    check_text(old, old.revised(apply(old.text, [edit])), [edit])
    with pytest.raises(GuardError, match="line ends"):
        check_text(old, old.revised(old.text + "x\n"), [Edit(41, 41, "x\n")])


# helpers


def test_a_span_is_found_after_edits() -> None:
    shift = Shift([Edit(2, 2, "ab"), Edit(5, 7, "")])
    assert shift.span(Span(2, 5)) == Span(4, 7)
    assert shift.span(Span(0, 2)) == Span(0, 2)
    assert shift.span(Span(7, 9)) == Span(7, 9)
    assert set(shift.spans(Span(2, 5))) == {Span(4, 7), Span(3, 7), Span(2, 7)}
    assert list(shift.written()) == [Span(2, 4), Span(7, 7)]


def test_edits_that_touch_a_span_are_found_and_inserted_blanks_are_not() -> None:
    edits = [Edit(1, 1, "a"), Edit(3, 3, "\n  "), Edit(4, 6, ""), Edit(9, 9, "b")]
    shift = Shift(edits)
    assert shift.within(Span(1, 4)) == [edits[0], edits[2]]
    assert shift.within(Span(6, 9)) == [edits[2], edits[3]]
    assert shift.within(Span(7, 8)) == []


def test_trees_are_compared_whole() -> None:
    def tree(text: str) -> ast.AST:
        return ast.parse(text)

    assert same(tree("f(a,\n  b)"), tree("f(a, (b))"))
    assert same(tree("x = 1e400 - 1e400"), tree("x = 1e400 - 1e400"))
    for one, other in (
        ("f(a)", "f(b)"),
        ("1", "1.0"),
        ("1", "True"),
        ("a + b", "a - b"),
        ("a", "a; b"),
        ("'a'", "b'a'"),
    ):
        assert not same(tree(one), tree(other))


# properties


PROGRAM = '''"""Doc # none."""
import torch
from torch import div
a = b = c = d = 1  # first
def f(x, y=2, *z, k: int = 3, **w) -> int:
    q = x + y * k - -x ** 2
    if q and not y or x:  # why
        return f(x, y, *z, k=q, **w)
    elif q < x <= y: return [i for i in z if i not in w]
    q += 1; y = q
    with open(x) as h, open(y): h.read()
    for i, j in zip(x, y): k = i if j else y
    try:
        x.y.z(q)[0:k, ...] = lambda n, m=1: n + m
    except (ValueError, KeyError) as e:
        raise e from None
    return f"{x + y!r:>{q}} and {div(x, y)}" f'{x}'
@torch.no_grad()
class K(torch.Tensor, metaclass=type):
    async def g(self):
        await self.g(); yield
        return div(a, b) ** 2 + c // div(a, b), {a: b, **c}, {*d}, (a, b)
x = div(a + 1, b).item() if (y := c) else -div(a, b)
print(x, a,
      b)
'''
OLD = Source("x.py", PROGRAM)
OLD_TREE = OLD.parse()
OLD_NAMES = Names(OLD_TREE)
BLANK_TOKENS = (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
TOKENS = [OLD.token_span(token) for token in OLD.tokens() if token.type not in BLANK_TOKENS]
NEW_TEXTS = (
    *(
        "",
        "c",
        "(",
        ")",
        ", ",
        ".item()",
        " + c",
        " * c",
        "**2",
        "-",
        "not ",
        " or c",
        " if a else b",
        "[0]",
        "(a)",
        "*",
    ),
    *(
        "a = ",
        "a, ",
        "k=",
        "lambda: ",
        "y := ",
        "; ",
        "\n",
        "    ",
        "\n    ",
        "\\\n",
        "import os\n",
        "if a: ",
        "with a:\n    ",
    ),
    *("# c", '"', "'s'", "def g():\n    pass\n", "return ", "await ", "1", "_", " is ", ":", "="),
)


@st.composite
def some_edits(draw: st.DrawFn) -> list[Edit]:
    found: list[Edit] = []
    for index in draw(st.lists(st.integers(0, len(TOKENS) - 1), min_size=1, max_size=3, unique=True)):
        span = TOKENS[index]
        text = draw(st.sampled_from(NEW_TEXTS))
        kind = draw(st.integers(0, 3))
        if kind == 0:
            found.append(Edit(span.start, span.start, text))
        elif kind == 1:
            found.append(Edit(span.end, span.end, text))
        else:
            last = TOKENS[min(len(TOKENS) - 1, index + draw(st.integers(0, 2)))] if kind == 3 else span
            found.append(Edit(span.start, last.end, text))
    found.sort()
    apart = all(one.end < other.start for one, other in pairwise(found))
    return found if apart else found[:1]


def displaced(new: Source, tree: ast.Module, edits: Sequence[Edit]) -> list[str]:
    """The nodes of the old tree that no edit touches, and that are not found, equal, where they should be."""
    found = {
        (new.span(node).start, new.span(node).end, ast.dump(node)) for node in ast.walk(tree) if hasattr(node, "lineno")
    }
    shift, lost = Shift(edits), []
    for node in ast.walk(OLD_TREE):
        if not hasattr(node, "lineno"):
            continue
        span, start = OLD.span(node), start_of(OLD, node)
        touched = any(edit.start <= span.end and edit.end >= start for edit in edits)
        at = shift.span(span)
        if not touched and (at.start, at.end, ast.dump(node)) not in found:
            lost.append(OLD.of(node))
    return lost


@settings(derandomize=True, database=None, deadline=None, max_examples=700)
@given(some_edits())
def test_what_gets_past_the_guards_leaves_everything_untouched_in_its_place(edits: list[Edit]) -> None:
    new = OLD.revised(apply(PROGRAM, edits))
    try:
        tree = new.parse()
    except Unreadable:
        return
    try:
        check_python(OLD, OLD_NAMES, new, Names(tree), edits)
    except GuardError:
        event("refused")
        return
    event("passed")
    assert displaced(new, tree, edits) == []


@settings(derandomize=True, database=None, deadline=None, max_examples=300)
@given(st.sampled_from(TOKENS), st.sampled_from(("c", "1", "-", "", "(", "zz", " ")))
def test_a_change_outside_the_edits_never_gets_past(span: Span, text: str) -> None:
    declared = Edit(PROGRAM.index("a + 1"), PROGRAM.index("a + 1") + 1, "b")
    if PROGRAM[span.start : span.end] == text or span.start == declared.start:
        return
    new = OLD.revised(apply(PROGRAM, [declared, Edit(span.start, span.end, text)]))
    try:
        tree = new.parse()
    except Unreadable:
        return
    with pytest.raises(GuardError):
        check_python(OLD, OLD_NAMES, new, Names(tree), [declared])


CONTEXTS = (
    *("{}", "{} ** 2", "2 ** {}", "-{}", "not {}", "{}.item()", "{}[0]", "c[{}]", "{}(c)", "f({}, c)", "f(c, k={})"),
    *("c // {}", "{} // c", "c + {} + d", "c-{}", "{} < c", "c < {}", "c or {}", "{} and c", "[{}]", "{}, c", "f(*{})"),
    *("{} if c else d", "c if {} else d", "c if d else {}", "lambda: {}", "({})", "({}) ** 2", "[c for c in {} if c]"),
)
TIGHT = ("{} ** 2", "{}.item()", "{}[0]", "{}(c)")
"""Where an operation never stands without brackets."""
OPERANDS = ("a", "a + 1", "a * b", "-a", "a ** b", "(a) + (b)", "f(a)", "a if c else b", "not a", "a < b", "1")
OPERATORS = (" // ", " ** ", " < ", " and ")


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_call_becomes_an_operator_exactly_where_the_meaning_stays(context: str) -> None:
    head = "a = b = c = d = f = div = 1\nx = "
    passed = 0
    for left, right in [(operand, "b") for operand in OPERANDS] + [("c", operand) for operand in OPERANDS]:
        old = Source("x.py", f"{head}{context.format(f'div({left}, {right})')}\n")
        for operator in OPERATORS:
            template = context.format(f"«div(|»{left}«, |{operator}»{right}«)|»")
            _, edits = shown(f"{head}{template}\n")
            try:
                new = ast.dump(ast.parse(apply(old.text, edits)))
            except SyntaxError:
                continue
            same_meaning = new == _with_operator(ast.parse(old.text), operator)
            try:
                check(old, edits)
            except GuardError:
                assert not same_meaning, template
            else:
                assert same_meaning, template
                passed += 1
    assert (passed == 0) == (context in TIGHT)


def _with_operator(tree: ast.Module, operator: str) -> str:
    """A tree, as text, with its one call of ``div`` as an operation."""

    class Replace(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            if not (isinstance(node.func, ast.Name) and node.func.id == "div"):
                return node
            new = ast.parse(f"x{operator}x", mode="eval").body
            left, right = node.args
            if isinstance(new, ast.BinOp):
                return ast.BinOp(left, new.op, right)
            if isinstance(new, ast.BoolOp):
                return ast.BoolOp(new.op, [left, right])
            assert isinstance(new, ast.Compare)
            return ast.Compare(left, new.ops, [right])

    return ast.dump(Replace().visit(tree))
