"""Statements put under a header: their lines move in, their strings keep their bytes."""

import ast

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from torchmod.edits import apply
from torchmod.guards import check_python
from torchmod.model import Refused, Unreadable
from torchmod.names import Names
from torchmod.regions import start_of, wrap
from torchmod.source import Source

HEADER = "with open(0):"


def blocks_of(names: Names) -> list[list[ast.stmt]]:
    """The lists of statements in a tree."""
    lists = [value for node in ast.walk(names.tree) for _, value in ast.iter_fields(node) if isinstance(value, list)]
    return [value for value in lists if value and isinstance(value[0], ast.stmt)]


def statement_with(names: Names, name: str) -> ast.stmt:
    """The statement that a name stands in."""
    node = next(n for n in ast.walk(names.tree) if isinstance(n, ast.Name) and n.id == name)
    statement = names.statement(node)
    assert statement is not None
    return statement


def wrapped(text: str) -> str:
    """The text with the statements from the one that names FIRST to the one that names LAST under the header."""
    source = Source("x.py", text)
    names = Names(source.parse())
    first = statement_with(names, "FIRST")
    last = statement_with(names, "LAST") if "LAST" in text else first
    return checked(source, names, first, last)


def checked(source: Source, names: Names, first: ast.stmt, last: ast.stmt) -> str:
    """The new text, after it was seen to mean the old one under the header, and to pass the guards."""
    edits, wrapper = wrap(source, names, first, last, HEADER)
    assert wrapper.header == HEADER
    assert source.text[wrapper.region.start : wrapper.region.end].endswith(source.of(last))
    new = source.revised(apply(source.text, edits))
    tree = new.parse()
    assert ast.dump(tree) == ast.dump(expected(source.text, names.tree, first, last))
    if not names.stars:
        check_python(source, names, new, Names(tree), edits, wrappers=[wrapper])
    return new.text


def expected(text: str, tree: ast.Module, first: ast.stmt, last: ast.stmt) -> ast.Module:
    """The tree with the statements in the body of a ``with``."""
    other = ast.parse(text)
    twins = dict(zip(ast.walk(tree), ast.walk(other), strict=True))
    for node in ast.walk(other):
        for _, block in ast.iter_fields(node):
            if isinstance(block, list) and twins[first] in block:
                start, end = block.index(twins[first]), block.index(twins[last]) + 1
                header = ast.parse(f"{HEADER}\n pass").body[0]
                assert isinstance(header, ast.With)
                header.body = block[start:end]
                block[start:end] = [header]
                return other
    raise AssertionError("the statement is in no block")


# right


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("FIRST\n", "with open(0):\n    FIRST\n"),
        ("a\nFIRST\nb\n", "a\nwith open(0):\n    FIRST\nb\n"),
        ("FIRST\na\nLAST\nb\n", "with open(0):\n    FIRST\n    a\n    LAST\nb\n"),
        ("def g():\n    a\n    FIRST\n    b\n", "def g():\n    a\n    with open(0):\n        FIRST\n    b\n"),
        ("def g():\n  a\n  FIRST\n", "def g():\n  a\n  with open(0):\n    FIRST\n"),
        ("def g():\n\ta\n\tFIRST\n", "def g():\n\ta\n\twith open(0):\n\t\tFIRST\n"),
        ("FIRST\ndef g():\n  a\n", "with open(0):\n  FIRST\ndef g():\n  a\n"),
        ("a\nFIRST", "a\nwith open(0):\n    FIRST"),
        # comments and blank lines
        ("FIRST  # c\n# d\nLAST  # e\n", "with open(0):\n    FIRST  # c\n    # d\n    LAST  # e\n"),
        ("# b\nFIRST\n# c\n", "# b\nwith open(0):\n    FIRST\n# c\n"),
        ("FIRST\n\n  \n\nLAST\n", "with open(0):\n    FIRST\n\n  \n\n    LAST\n"),
        (
            "def g():\n    FIRST\n# left\n    LAST\n",
            "def g():\n    with open(0):\n        FIRST\n    # left\n        LAST\n",
        ),
        # compound statements
        (
            "for FIRST in a:\n    if b:\n        f()\nelse:\n    f()\n",
            "with open(0):\n    for FIRST in a:\n        if b:\n            f()\n    else:\n        f()\n",
        ),
        ("if FIRST: f()\n", "with open(0):\n    if FIRST: f()\n"),
        ("elif_count = FIRST\n", "with open(0):\n    elif_count = FIRST\n"),
        # the step
        ("FIRST\ndef g():\n\ta\n", "with open(0):\n\tFIRST\ndef g():\n\ta\n"),
        ("FIRST\nif a: b\n", "with open(0):\n    FIRST\nif a: b\n"),
        ("match a:\n\tcase 1:\n\t\tFIRST\n", "match a:\n\tcase 1:\n\t\twith open(0):\n\t\t\tFIRST\n"),
        # lines in brackets and after a backslash
        ("f(FIRST,\n  a,\n\n# c\n)\n", "with open(0):\n    f(FIRST,\n      a,\n\n    # c\n    )\n"),
        ("FIRST = a + \\\n    b\n", "with open(0):\n    FIRST = a + \\\n        b\n"),
        ("FIRST = a + \\\nb\n", "with open(0):\n    FIRST = a + \\\n    b\n"),
        ("(\nFIRST\n)\n", "with open(0):\n    (\n    FIRST\n    )\n"),
        # decorators
        ("@FIRST\ndef g():\n    a\n", "with open(0):\n    @FIRST\n    def g():\n        a\n"),
        ("@a\n@ FIRST\nclass K:\n    a\n", "with open(0):\n    @a\n    @ FIRST\n    class K:\n        a\n"),
        ("@(\n    FIRST\n)\ndef g(): a\n", "with open(0):\n    @(\n        FIRST\n    )\n    def g(): a\n"),
        (
            "class K:\n    @FIRST\n    def g(self): a\n",
            "class K:\n    with open(0):\n        @FIRST\n        def g(self): a\n",
        ),
        # a form feed sets the column back
        ("FIRST\n\fLAST\n", "with open(0):\n    FIRST\n\f    LAST\n"),
        (
            "def g():\n    FIRST\n\f    LAST\n",
            "def g():\n    with open(0):\n        FIRST\n\f        LAST\n",
        ),
        ("\fFIRST\nLAST\n", "\fwith open(0):\n\f    FIRST\n    LAST\n"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lines_move_in(text: str, new: str, newline: str) -> None:
    assert wrapped(text.replace("\n", newline)) == new.replace("\n", newline)


@pytest.mark.parametrize(
    "string",
    [
        "'''one\n  two\nthree'''",
        '"""\n\n"""',
        "'''one\n''' + '''\n two'''",
        "'one\\\n  two'",
        "rb'''\n  one\\\n'''",
        "f'''{a}\n  two {b}\n{f(\n a)}\n'''",
        "f'one\\\n  {a} two'",
        'f"""{f("x")}\n  {f\'y\'}\nz"""',
        "f'''{a!r:\n>{b}}\n'''",
        "('''\n''',\n  f'''\n''',\n'x')",
        "'''\n''' f'''\n{a}''' \\\n  'x'",
        'f("""\n  \'\'\'\n  # no comment\n""",  # c\n  a)',
    ],
)
@pytest.mark.parametrize("head", ["FIRST = {}\n", "def g():\n    FIRST\n    x = {}\n    LAST\n", "f({},\n  FIRST)\n"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_strings_keep_their_bytes(string: str, head: str, newline: str) -> None:
    wrapped(head.format(string).replace("\n", newline))


def test_a_line_that_begins_in_a_string_is_not_indented_though_it_ends_outside() -> None:
    text = "FIRST = '''\n  a''' + f(\n  b)\n"
    assert wrapped(text) == "with open(0):\n    FIRST = '''\n  a''' + f(\n      b)\n"


def test_nested_f_strings_with_the_same_quotes_keep_their_bytes() -> None:
    text = 'FIRST = f"""{f"""\n  {a}\n"""}\n  b\n"""\n'
    try:
        ast.parse(text)
    except SyntaxError:
        pytest.skip("this Python has no f-strings with nested equal quotes")
    assert wrapped(text) == f"{HEADER}\n    {text}"


def test_the_step_is_the_one_that_the_file_uses_for_such_lines() -> None:
    mixed = "if a:\n   b\ndef g():\n\tFIRST\n\tif a:\n\t\tb\n"
    assert wrapped(mixed) == "if a:\n   b\ndef g():\n\twith open(0):\n\t\tFIRST\n\tif a:\n\t\tb\n"
    odd = "if a:\n\tif b:\n\t    a\n\tFIRST\n\tfor LAST in a:\n\t    b\n"
    assert wrapped(odd).startswith("if a:\n\tif b:\n\t    a\n\twith open(0):\n\t\tFIRST\n\t\tfor LAST")


def test_a_region_in_a_region_is_wrapped_again() -> None:
    once = wrapped("def g():\n    FIRST\n    LAST\n")
    assert wrapped(once) == (
        "def g():\n    with open(0):\n        with open(0):\n            FIRST\n            LAST\n"
    )


def test_a_region_over_other_blocks_of_the_statement() -> None:
    assert "else:\n    with open" in wrapped("if a:\n    b\nelse:\n    FIRST\n")
    assert "finally:\n    with open" in wrapped("try:\n    b\nfinally:\n    FIRST\n")
    assert "case 1:\n        with open" in wrapped("match a:\n    case 1:\n        FIRST\n    case _:\n        b\n")
    assert "except b:\n    with open" in wrapped("try:\n    b\nexcept b:\n    FIRST\n    LAST\n")


# refused


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("if a: FIRST\n", "shares its line"),
        ("for x in a: FIRST; b\n", "shares its line"),
        ("class K: FIRST\n", "shares its line"),
        ("if a:\n    b\nelse: FIRST\n", "shares its line"),
        ("a; FIRST\n", "shares its line"),
        ("def g(): FIRST\n", "shares its line"),
        ("FIRST; a\n", "another statement"),
        ("FIRST;\n", "another statement"),
        ("FIRST\nLAST; a\n", "another statement"),
        ("FIRST \\\n\na\n", "another statement"),
        ("FIRST \\\n; a\n", "another statement"),
        ("a; \\\nFIRST\n", "backslash"),
        ("if a: \\\n  FIRST\n", "backslash"),
        ("if a:\n    b\nelif FIRST:\n    b\n", "elif"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_line_that_holds_more_than_the_region_is_refused(text: str, match: str, newline: str) -> None:
    with pytest.raises(Refused, match=match):
        wrapped(text.replace("\n", newline))


@pytest.mark.parametrize(
    "text",
    [
        "if a:\n    FIRST\nelse:\n    LAST\n",
        "try:\n    FIRST\nfinally:\n    LAST\n",
        "FIRST\nif a:\n    LAST\n",
        "if a:\n    FIRST\nLAST\n",
        "LAST\nFIRST\n",
        "match a:\n    case 1:\n        FIRST\n    case 2:\n        LAST\n",
    ],
)
def test_statements_that_are_not_in_one_block_are_refused(text: str) -> None:
    with pytest.raises(Refused, match="not in one block"):
        wrapped(text)


def test_what_cannot_be_taken_into_tokens_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Source) -> None:
        raise Unreadable("no tokens")

    monkeypatch.setattr(Source, "tokens", fail)
    with pytest.raises(Refused, match="no tokens"):
        wrapped("FIRST\n")


def test_a_start_has_its_decorators_with_it() -> None:
    source = Source("x.py", "x = 1\n@a\n@ (\n  b)\nclass K: pass\n")
    assert [source.line_at(start_of(source, s)) for s in source.parse().body] == [1, 2]


# properties


SIMPLE = (
    *(
        "a = 1",
        "f(a,\n  b)",
        "x = '''s\n t'''",
        "f'''{a}\n {b}'''",
        "pass",
        "a = b + \\\n  b",
        "f(  # c\n)",
        "a  # c",
        "del b",
    ),
    *("a; b", "(\na\n)", "'one\\\n two'", "x = [\n\n# c\n1]", "if a: b", "assert a, '''\n'''", "return", "import os"),
)
HEADS = (
    "if a:",
    "for i in b:",
    "while a:",
    "with a as b:",
    "def g():",
    "class K:",
    "@a\ndef g():",
    "@a(\n 1)\n@b\nclass K:",
)


@st.composite
def blocks(draw: st.DrawFn, unit: str, indent: str = "", depth: int = 0) -> str:
    """Statements, compound ones among them, with comments and empty lines between."""
    text = ""
    for _ in range(draw(st.integers(1, 3))):
        text += draw(st.sampled_from(["", "", "\n", f"{indent}# c\n", "# c\n", "   \n", "\f\n"]))
        if depth < 2 and draw(st.integers(0, 2)) == 0:
            head = draw(st.sampled_from(HEADS)).replace("\n@", f"\n{indent}@").replace("\nd", f"\n{indent}d")
            text += f"{indent}{head.replace(chr(10) + 'c', chr(10) + indent + 'c')}\n"
            text += draw(blocks(unit, indent + unit, depth + 1))
            if head == "if a:" and draw(st.booleans()):
                text += f"{indent}else:\n" + draw(blocks(unit, indent + unit, depth + 1))
        else:
            text += f"{indent}{draw(st.sampled_from(SIMPLE))}\n"
    return text


@st.composite
def regions(draw: st.DrawFn) -> tuple[Source, Names, ast.stmt, ast.stmt]:
    unit = draw(st.sampled_from(["    ", "  ", "\t"]))
    text = "def h():\n" + draw(blocks(unit, unit)) + draw(blocks(unit))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n", "\r"])))
    if draw(st.booleans()):
        text = text.rstrip()
    source = Source("x.py", text)
    names = Names(source.parse())
    block = draw(st.sampled_from(blocks_of(names)))
    first = draw(st.integers(0, len(block) - 1))
    return source, names, block[first], block[draw(st.integers(first, len(block) - 1))]


@settings(derandomize=True, database=None, deadline=None, max_examples=400)
@given(regions())
def test_a_region_is_refused_or_stands_under_its_header_with_its_strings(
    region: tuple[Source, Names, ast.stmt, ast.stmt],
) -> None:
    source, names, first, last = region
    try:
        new = checked(source, names, first, last)
    except Refused as refusal:
        event(str(refusal))
        return
    event("wrapped")
    assert new.count("#") == source.text.count("#")
