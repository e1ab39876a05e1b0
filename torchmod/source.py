"""A file's bytes as text and back: encoding, BOM and line ends, and where in the text a syntax node stands."""

from __future__ import annotations

import ast
import codecs
import re
import tokenize
import warnings
from bisect import bisect_right
from functools import cached_property

from torchmod.model import Place, Span, Unreadable

BOM = codecs.BOM_UTF8
_LINE_END = re.compile(rb"\r\n?|\n")


class Source:
    """The text of one file, with what is needed to write it back byte for byte except at the edits."""

    def __init__(self, path: str, text: str, encoding: str = "utf-8", *, bom: bool = False) -> None:
        self.path = path
        self.text = text
        self.encoding = encoding
        self.bom = bom

    @classmethod
    def decode(cls, path: str, data: bytes) -> Source:
        """Read a file's bytes; raises Unreadable, naming the line and what to do, when they are not text."""
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise Unreadable("line 1: it is UTF-16, which Python does not read: save it as UTF-8")
        bom = data.startswith(BOM)
        body = data[len(BOM) :] if bom else data
        if b"\0" in body:
            line = _line_of(body, body.index(0))
            raise Unreadable(f"line {line}: it holds a null byte, which no Python source may: restore the file")
        line, encoding = (1, "utf-8") if bom else _encoding(data)
        try:
            text = body.decode(encoding)
            source = cls(path, text, encoding, bom=bom)
            faithful = source.encode(text) == data
        except UnicodeDecodeError as error:
            advice = "name its encoding in the first line, as in `# -*- coding: latin-1 -*-`"
            raise Unreadable(
                f"line {_line_of(body, error.start)}: byte 0x{body[error.start]:02x} is not {encoding}: "
                + (advice if encoding == "utf-8" else "save the file as UTF-8")
            ) from None
        except (UnicodeError, LookupError):  # such as rot13, which Python knows but reads no source in
            raise Unreadable(f"line {line}: it cannot be read as {encoding}: save the file as UTF-8") from None
        if not faithful:
            raise Unreadable(
                f"line {line}: its bytes cannot be written back as {encoding} without a change: save the file as UTF-8"
            )
        return source

    def encode(self, text: str) -> bytes:
        """A text in this file's encoding, with its BOM; raises UnicodeEncodeError for what it has no place for."""
        return BOM * self.bom + text.encode(self.encoding)

    def revised(self, text: str) -> Source:
        """The same file with another text."""
        return Source(self.path, text, self.encoding, bom=self.bom)

    def parse(self) -> ast.Module:
        """The syntax tree; raises Unreadable, naming the line, when today's Python does not accept the text."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # invalid escapes and the like are the user's business
                return ast.parse(self.text)
        except SyntaxError as error:
            line = f"line {error.lineno}: " if error.lineno else ""
            raise Unreadable(f"{line}{error.msg}: not valid Python 3") from None
        except (RecursionError, MemoryError):
            raise Unreadable("it is nested too deeply for Python's own parser") from None
        except (ValueError, UnicodeEncodeError) as error:
            raise Unreadable(f"Python cannot parse it: {error}") from None

    @cached_property
    def newline(self) -> str:
        """The file's first line end; ``\\n`` when it has none."""
        for start in self._line_starts[1:2]:
            return "\r\n" if self.text[start - 2 : start] == "\r\n" else self.text[start - 1]
        return "\n"

    @cached_property
    def quote(self) -> str:
        """The quote that the file uses more often for short strings."""
        double = self.text.count('"') - 3 * self.text.count('"""')
        single = self.text.count("'") - 3 * self.text.count("'''")
        return '"' if double >= single else "'"

    @cached_property
    def _line_starts(self) -> list[int]:
        """Offsets at which lines start. Only ``\\n``, ``\\r\\n`` and a lone ``\\r`` end one, as in Python's parser."""
        return [0, *(end.end() for end in re.finditer(r"\r\n?|\n", self.text))]

    @cached_property
    def _ascii(self) -> bool:
        return self.text.isascii()

    @property
    def line_count(self) -> int:
        """How many lines there are; a text that ends in a line end has a last, empty one."""
        return len(self._line_starts)

    def line_span(self, line: int) -> Span:
        """The span of a 1-based line, its line end included."""
        starts = self._line_starts
        return Span(starts[line - 1], starts[line] if line < len(starts) else len(self.text))

    def line_text(self, line: int) -> str:
        """A 1-based line, its line end included."""
        span = self.line_span(line)
        return self.text[span.start : span.end]

    def line_at(self, offset: int) -> int:
        """The 1-based line that an offset is in."""
        return bisect_right(self._line_starts, offset)

    def offset(self, line: int, utf8_column: int) -> int:
        """The offset of the parser's position: a 1-based line and a column in UTF-8 bytes."""
        start = self._line_starts[line - 1]
        if self._ascii:
            return start + utf8_column
        # a character takes at most four bytes, and each byte at least a quarter of a character
        head = self.text[start : start + utf8_column].encode()[:utf8_column]
        return start + len(head.decode())

    def span(self, node: ast.AST) -> Span:
        """The span of a node that has a position."""
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        end_line, end_column = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        return Span(self.offset(line, column), self.offset(end_line, end_column))

    def of(self, node: ast.AST) -> str:
        """The text of a node that has a position."""
        span = self.span(node)
        return self.text[span.start : span.end]

    def place(self, span: Span) -> Place:
        """Lines and columns of a span, 1-based, columns in code points."""
        line, end_line = self.line_at(span.start), self.line_at(span.end)
        return Place(
            line,
            span.start - self._line_starts[line - 1] + 1,
            end_line,
            span.end - self._line_starts[end_line - 1] + 1,
        )

    def tokens(self) -> list[tokenize.TokenInfo]:
        """Python's tokens, comments included; positions are 1-based lines and columns in code points.

        Raises Unreadable when the text cannot be taken apart.
        """
        # tokenize knows no lone \r: as long as each line end is one token apart, positions stay right
        lines = iter([self.line_text(n).rstrip("\r\n") + "\n" for n in range(1, self.line_count + 1)])
        try:
            return list(tokenize.generate_tokens(lambda: next(lines, "")))
        except (tokenize.TokenError, SyntaxError) as error:
            raise Unreadable(f"it cannot be taken into tokens: {error}") from None

    def quote_around(self, string: Span, offset: int) -> str:
        """The quote of the part of a string (parts may follow each other: ``f'a' f"b"``) that an offset is in."""
        part = Source("", f"({self.text[string.start : string.end]}\n)")
        names = {number: name for number, name in tokenize.tok_name.items() if name.endswith("STRING_START")}
        depth, quote = 0, ""
        for token in part.tokens():
            if token.type == tokenize.STRING or token.type in names:
                starts_here = part.token_span(token).start - 1 <= offset - string.start
                if depth == 0 and starts_here:
                    quote = token.string.lstrip("rRbBfFuUtT")[:1]
                depth += token.type in names
            elif tokenize.tok_name[token.type].endswith("STRING_END"):
                depth -= 1
        return quote

    def token_span(self, token: tokenize.TokenInfo) -> Span:
        """The span of a token."""
        first, last = self._line_starts[token.start[0] - 1], self._line_starts[token.end[0] - 1]
        if first == last:
            return Span(first + token.start[1], last + token.end[1])
        # the column that Python 3.12.1 gives for the end of several lines may be wrong
        return Span(first + token.start[1], last + len(token.string.rpartition("\n")[2]))


def _encoding(data: bytes) -> tuple[int, str]:
    """The encoding that one of the first two lines names, with that line; as Python's parser looks for it."""
    # a lone \r ends a line, too; other bytes may be in the encoding that is still to be found
    head = [re.sub(rb"[^ -~\t\f]", b"?", line) + b"\n" for line in _LINE_END.split(data, maxsplit=2)[:2]]
    line = 1 if tokenize.cookie_re.match(head[0].decode()) else 2
    try:
        return line, tokenize.detect_encoding(iter(head).__next__)[0]
    except SyntaxError as error:
        raise Unreadable(f"line {line}: {error}: name one that Python knows, such as utf-8") from None


def _line_of(data: bytes, offset: int) -> int:
    return len(_LINE_END.findall(data, 0, offset)) + 1
