"""Bytes become text and the same bytes again; positions of the parser become offsets; what is no text is named."""

import ast
import warnings
from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchmod.model import Place, Span, Unreadable
from torchmod.source import BOM, Source

deterministic = settings(derandomize=True, database=None, deadline=None, max_examples=300)
NEWLINES = pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])

BYTES = {
    "UTF-8": ("# é 日本 𝒳\nx = 1\n".encode(), "utf-8"),
    "UTF-8 with BOM": (BOM + "x = 'é'\n".encode(), "utf-8"),
    "BOM alone": (BOM, "utf-8"),
    "BOM and cookie": (BOM + b"# coding: utf-8\n", "utf-8"),
    "BOM and cookie of something else": (BOM + b"# coding: latin-1\nx = '\xc3\xa9'\n", "utf-8"),
    "cookie of UTF-8": (b"# -*- coding: UTF-8 -*-\nx = '\xc3\xa9'\n", "utf-8"),
    "cookie of an editor": (b"# -*- coding: latin-1-unix -*-\n# \xe9\n", "iso-8859-1"),
    "Latin-1": (b"# coding: latin-1\nx = '\xe9'\n", "iso-8859-1"),
    "Latin-1 in the line of the cookie": (b"# Andr\xe9, vim: set fileencoding=latin-1 :\nx = 1\n", "iso-8859-1"),
    "Latin-1 after a shebang": (b"#!/usr/bin/env python\n# coding=latin-1\nx = '\xe9'\n", "iso-8859-1"),
    "Latin-1 with CRLF": (b"#!python\r\n# coding: latin-1\r\nx = '\xe9'\r\n", "iso-8859-1"),
    "Latin-1 with lone CR": (b"# coding: latin-1\rx = '\xe9'\r", "iso-8859-1"),
    "Latin-1 on the second of lone CR lines": (b"#!python\r# coding: latin-1\rx = '\xe9'\r", "iso-8859-1"),
    "cp1252": (b"# coding: cp1252\nx = '\x93quoted\x94'\n", "cp1252"),
    "GBK": ("# coding: gbk\nx = '损失函数'\n".encode("gbk"), "gbk"),
    "GBK in a line before the cookie": ("# 作者: 王\n# coding: gbk\nx = '损失'\n".encode("gbk"), "gbk"),
    "Shift JIS with a backslash as second byte": ("# coding: shift_jis\nx = '表'\n".encode("shift_jis"), "shift_jis"),
    "CRLF": (b"x = 1\r\ny = 2\r\n", "utf-8"),
    "lone CR": (b"x = 1\ry = 2\r", "utf-8"),
    "mixed line ends": (b"a\r\nb\rc\nd\r\r\ne\n\r", "utf-8"),
    "tabs and form feeds": (b"if x:\n\ty = 1\n\x0c\nz = 2\x0c\t\n", "utf-8"),
    "no final newline": (b"x = 1", "utf-8"),
    "empty": (b"", "utf-8"),
    "line separators that are none for Python": ("x = '\x0b\x1c\x85\u2028'\n".encode(), "utf-8"),
    "a later line that looks like a cookie": (b"x = 1\n\n# coding: latin-1\ny = '\xc3\xa9'\n", "utf-8"),
    "a third line that looks like a cookie": (b"# a\n# b\n# coding: latin-1\ny = '\xc3\xa9'\n", "utf-8"),
    "a lone CR line that looks like a cookie": (b"x = 1\r# coding: latin-1\ry = '\xc3\xa9'\r", "utf-8"),
    "a comment that only talks of coding": (b"# decoding is fun\nx = 1\n", "utf-8"),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_come_back_as_they_were(name: str) -> None:
    data, encoding = BYTES[name]
    source = Source.decode("x.py", data)
    assert source.encoding == encoding
    assert source.encode(source.text) == data
    assert not source.text.startswith("\ufeff")


@given(
    st.sampled_from(["utf-8", "latin-1", "gbk", "shift_jis", "utf-8-sig"]),
    st.lists(st.sampled_from(["x", "'é'", "'损'", "'表'", "\t", "\f", "\n", "\r", "\r\n", "\x85", "𝒳", "\u2028"])),
)
@deterministic
def test_any_text_that_an_encoding_has_a_place_for_comes_back(encoding: str, parts: list[str]) -> None:
    text = f"# coding: {encoding.removesuffix('-sig')}\n" + "".join(parts).encode(encoding, "ignore").decode(encoding)
    data = text.encode(encoding)
    source = Source.decode("x.py", data)
    assert (source.text, source.encode(source.text)) == (text, data)


def test_a_changed_text_is_written_with_the_files_own_encoding_and_bom() -> None:
    source = Source.decode("x.py", BOM + b"x = 1\n")
    assert source.revised("é = 1\n").encode("é = 1\n") == BOM + "é = 1\n".encode()
    latin = Source.decode("x.py", b"# coding: latin-1\n")
    assert latin.revised("é").encode("é") == b"\xe9"
    with pytest.raises(UnicodeEncodeError):
        latin.encode("损")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"x = 1\ny = '\0'\n", "line 2: it holds a null byte, which no Python source may: restore the file"),
        (b"x = 1\r\n\r\0", "line 3: it holds a null byte, which no Python source may: restore the file"),
        ("x = 1\n".encode("utf-16"), "line 1: it is UTF-16, which Python does not read: save it as UTF-8"),
        (
            b"x = 1\ny = '\xe9'\n",
            "line 2: byte 0xe9 is not utf-8: name its encoding in the first line, as in `# -*- coding: latin-1 -*-`",
        ),
        (
            b"x = 1\ry = 1\rz = '\xed\xa0\x80'\r",  # a lone surrogate
            "line 3: byte 0xed is not utf-8: name its encoding in the first line, as in `# -*- coding: latin-1 -*-`",
        ),
        (
            BOM + b"x = 1\n\xff\n",
            "line 2: byte 0xff is not utf-8: name its encoding in the first line, as in `# -*- coding: latin-1 -*-`",
        ),
        (b"# coding: ascii\nx = 1\ny = '\xe9'\n", "line 3: byte 0xe9 is not ascii: save the file as UTF-8"),
        (b"# coding: gbk\n'\xff'\n", "line 2: byte 0xff is not gbk: save the file as UTF-8"),
        (
            b"# coding: klingon\nx = 1\n",
            "line 1: unknown encoding: klingon: name one that Python knows, such as utf-8",
        ),
        (
            b"# decoding: is fun\n",
            "line 1: unknown encoding: is: name one that Python knows, such as utf-8",
        ),
        (
            b"#!/usr/bin/python\n# \xe9 coding: klingon\n",
            "line 2: unknown encoding: klingon: name one that Python knows, such as utf-8",
        ),
        (b"# coding: rot13\nk = 1\n", "line 1: it cannot be read as rot13: save the file as UTF-8"),
        (b"\n# coding: undefined\nk = 1\n", "line 2: it cannot be read as undefined: save the file as UTF-8"),
        (
            b"# coding: utf-7\nx = '+AGE-'\n",
            "line 1: its bytes cannot be written back as utf-7 without a change: save the file as UTF-8",
        ),
    ],
)
def test_what_is_no_text_is_named_with_its_line_and_what_to_do(data: bytes, message: str) -> None:
    with pytest.raises(Unreadable) as error:
        Source.decode("x.py", data)
    assert str(error.value) == message


@given(st.sampled_from(["utf-8", "iso2022_jp", "iso2022_kr", "hz", "punycode", "cp932", "utf-16-le"]), st.binary())
@deterministic
def test_no_bytes_at_all_end_in_another_exception(encoding: str, rest: bytes) -> None:
    data = f"# coding: {encoding}\n".encode() + rest
    source = or_why_not(lambda: Source.decode("x.py", data))
    assert source.startswith("line ") if isinstance(source, str) else source.encode(source.text) == data


T = TypeVar("T")


def or_why_not(read: Callable[[], T]) -> T | str:
    """What is read, or the reason why it cannot be; any other exception ends the test."""
    try:
        return read()
    except Unreadable as error:
        return str(error)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ny = (\n", "line 2: '(' was never closed: not valid Python 3"),
        ("x = 1\nprint 'a'\n", "line 2: Missing parentheses in call to 'print'. Did you mean print(...)?: not valid"),
        ("if x:\r\ty = 1\r  z = 1\r", "line 3: unindent does not match any outer indentation level: not valid"),
        ("x = " + "(" * 2000 + ")" * 2000, "line 1: too many nested parentheses: not valid Python 3"),
        ("x = 1\ny = '\ud800'\n", "Python cannot parse it: "),
    ],
    ids=["open bracket", "Python 2", "indentation", "2,000 brackets", "lone surrogate"],
)
def test_what_does_not_parse_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(Unreadable) as error:
        Source("x.py", text).parse()
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    "text",
    [
        "if a:\n    x\n" + "elif a:\n    x\n" * 5000,
        "x = a" + ".b()" * 5000,
        "x = a" + ".b" * 5000,
        "x = " + "not " * 5000 + "a",
        "x = a" + " + a" * 10000,
        "x = " + "[" * 2000 + "]" * 2000,
        "x = " + "lambda: " * 2000 + "a",
    ],
    ids=["elif", "calls", "attributes", "not", "sum", "brackets", "lambdas"],
)
def test_what_is_too_deep_for_pythons_parser_is_named_or_parsed(text: str) -> None:
    tree = or_why_not(Source("x.py", text).parse)
    assert "nested" in tree if isinstance(tree, str) else len(tree.body) == 1


def test_warnings_of_the_parser_are_not_shown() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Source("x.py", "x = '\\d' is 1\n").parse()
    assert not caught


SAMPLE = """\
é = 1
x = "𝒳" + f(é, "日本", a)  # é 𝒳
s = f'é {a!r} {g(é):>{width}} {{}} 𝒳 {h["k"]} {a = }' 'tail' + é
t = rf'''é
{a} 𝒳 {b.c + é}{
    f(é)}
''' + d
if a: \f b = c  # é
class É(Base): pass
def f(é, *, 𝒳=a[b:c], **日本) -> é:
\tq = (a,
\t\té, 'x \\
y', lambda é: (é) if é else [ö for ö in é])
\treturn f"{f'{é}'}" f"𝒳{é}"
@é.d(a)
async def g(): await é; x, *y = é  # the last one has no line end: 日本
"""


@NEWLINES
@pytest.mark.parametrize("ending", ["", "\n"], ids=["no final line end", "final line end"])
def test_the_span_of_every_expression_is_its_own_text(newline: str, ending: str) -> None:
    text = (SAMPLE.rstrip("\n") + ending).replace("\n", newline)
    source = Source("x.py", text)
    tree = source.parse()
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.expr) and not isinstance(n, ast.Starred | ast.Slice)]
    # what stands outside the braces of an f-string has no place of its own
    strings = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    inside = {part for string in strings for part in ast.walk(string) if part is not string and is_text(part)}
    nodes = [node for node in nodes if node not in inside]
    assert len(nodes) > 60
    for node in nodes:
        assert same(ast.parse(f"({source.of(node)}\n)", mode="eval").body, node), source.of(node)


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.FormattedValue | ast.JoinedStr | ast.Constant)


def same(one: ast.expr, other: ast.expr) -> bool:
    return ast.dump(one).replace("Load()", "Store()") == ast.dump(other).replace("Load()", "Store()")


@NEWLINES
def test_the_span_of_a_statement_ends_where_it_ends(newline: str) -> None:
    source = Source("x.py", "é = (1,\n  '𝒳')\ny = é\n".replace("\n", newline))
    first, second = source.parse().body
    assert source.of(first) == f"é = (1,{newline}  '𝒳')"
    assert source.of(second) == "y = é"


@NEWLINES
def test_comments_are_tokens_with_the_span_of_their_text(newline: str) -> None:
    source = Source("x.py", SAMPLE.replace("\n", newline))
    spans = [source.token_span(token) for token in source.tokens() if token.string.startswith("#")]
    assert [source.text[span.start : span.end] for span in spans] == [
        "# é 𝒳",
        "# é",
        "# the last one has no line end: 日本",
    ]


@NEWLINES
def test_the_span_of_a_token_may_reach_over_lines(newline: str) -> None:
    string = f'"""é{newline}{newline}𝒳"""'
    source = Source("x.py", f"é = {string} + b")
    (span,) = (source.token_span(token) for token in source.tokens() if token.string.startswith('"'))
    assert source.text[span.start : span.end] == string


def test_what_cannot_be_taken_into_tokens_is_named() -> None:
    with pytest.raises(Unreadable, match=r"^it cannot be taken into tokens: "):
        Source("x.py", "x = (\n").tokens()


@pytest.mark.parametrize(
    ("text", "at", "quote"),
    [
        ("f'{a}'", "a", "'"),
        ('f"{a}"', "a", '"'),
        ("F'''{a}'''", "a", "'"),
        ("""f'{b}' f"{a}" """, "a", '"'),
        ("""f'{a}' f"{b}" """, "a", "'"),
        ("""'x' rf"é{b['k']}{a}" 'y'""", "a", '"'),
        ("""f"é"\n  f'{b["k"]}{a}'""", "a", "'"),
        ("""f'{f"{b}"}{a}'""", "a", "'"),
    ],
)
def test_the_quote_around_a_place_is_that_of_its_part_of_the_string(text: str, at: str, quote: str) -> None:
    source = Source("x.py", f"x = ({text})\n")
    assert source.quote_around(Span(5, 5 + len(text)), source.text.index(at, 6)) == quote


LINES = st.lists(st.sampled_from(["a", "é𝒳", "\f", "\x0b", "\x85", "\u2028", "\n", "\r", "\r\n"]), max_size=12)


@given(LINES)
@deterministic
def test_lines_are_those_of_pythons_parser_and_make_up_the_text(parts: list[str]) -> None:
    source = Source("x.py", "".join(parts))
    lines = [source.line_text(line) for line in range(1, source.line_count + 1)]
    assert "".join(lines) == source.text
    assert all(line.endswith(("\n", "\r")) and not line.endswith("\r\n\n") for line in lines[:-1])
    assert not any(end in line.removesuffix("\n").removesuffix("\r") for line in lines for end in "\r\n")
    for offset in range(len(source.text) + 1):
        line = source.line_at(offset)
        span = source.line_span(line)
        assert span.start <= offset < span.end or (line == source.line_count and span.start <= offset == span.end)


@NEWLINES
def test_lines_agree_with_the_parsers(newline: str) -> None:
    text = "x\n\nx\n\fx\n'''\n\x0c \u2028'''; x\nx\n".replace("\n", newline)
    source = Source("x.py", text)
    for node in ast.walk(source.parse()):
        if isinstance(node, ast.Name):
            assert source.line_at(source.span(node).start) == node.lineno
            assert source.of(node) == "x"


@NEWLINES
def test_places_are_one_based_and_count_code_points(newline: str) -> None:
    source = Source("x.py", f"a{newline}é𝒳 = b{newline}{newline}c")
    start = source.text.index("𝒳")
    assert source.place(Span(0, 1)) == Place(1, 1, 1, 2)
    assert source.place(Span(start, start + 5)) == Place(2, 2, 2, 7)
    assert source.place(Span(start, len(source.text))) == Place(2, 2, 4, 2)
    assert source.place(Span(len(source.text), len(source.text))) == Place(4, 2, 4, 2)


@pytest.mark.parametrize(
    ("text", "newline"),
    [
        ("", "\n"),
        ("x", "\n"),
        ("x\ny\r\n", "\n"),
        ("x\r\ny\n", "\r\n"),
        ("x\ry\n", "\r"),
        ("\r\r\n", "\r"),
        ("\r\n", "\r\n"),
    ],
)
def test_the_newline_of_a_file_is_its_first(text: str, newline: str) -> None:
    assert Source("x.py", text).newline == newline


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("", '"'),
        ("x = 'a'", "'"),
        ("x = 'a' + \"b\"", '"'),
        ('"""don\'t"""; x = \'a\'', "'"),
        ("'''a'''; x = \"b\"", '"'),
    ],
)
def test_the_quote_of_a_file_is_the_one_it_uses_more_for_short_strings(text: str, quote: str) -> None:
    assert Source("x.py", text).quote == quote
