"""The arguments of a call: which parameter each gives a value to, and the one place where they are edited.

LibCST takes the call's text apart (commas, comments, brackets). The new text is made of pieces of the old one and of
what is put in, so a rewrite comes out as the smallest edits, and no comment is lost.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchmod.edits import Kept, Piece, Revision
from torchmod.knowledge.signature import Signature
from torchmod.model import Edit, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    import libcst


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument and the parameter it gives a value to; None where ``*`` or ``**`` hide that."""

    value: ast.expr
    parameter: str | None
    named: bool


@dataclass(frozen=True, slots=True)
class Operand:
    """The value of one of the call's own parameters, as a piece of a new value."""

    parameter: str
    brackets: bool = False


NewValue = Sequence[str | Operand]


def bind(call: ast.Call, signature: Signature, before: int = 0) -> Iterator[Argument]:
    """All arguments in the order of the source; the first ``before`` ones belong to no parameter (``self``)."""
    places = iter((*[None] * before, *signature.positional))
    clear = True
    everything: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    for argument in sorted(everything, key=lambda node: (node.lineno, node.col_offset)):
        if isinstance(argument, ast.keyword):
            yield Argument(argument.value, argument.arg, True)
        else:
            clear = clear and not isinstance(argument, ast.Starred)
            yield Argument(argument, next(places, None) if clear else None, False)


def rewritten(
    text: str, arguments: Sequence[Argument], dropped: frozenset[str], put: Mapping[str, NewValue]
) -> tuple[Edit, ...]:
    """The edits to a call's text that drop parameters and put others in; offsets count from the text's start.

    What follows a dropped place is named. Raises Refused when the text cannot be taken apart safely.
    """
    parts = take_apart(text)
    if len(parts.arguments) != len(arguments):
        raise Refused("LibCST and Python's parser count its arguments differently")
    known = [argument.parameter for argument in arguments if argument.parameter]
    if len(set(known)) < len(known):
        raise Refused("it gives a parameter two values")
    pairs = zip(arguments, parts.arguments, strict=True)
    if any(isinstance(argument.value, ast.GeneratorExp) and not part.bracketed for argument, part in pairs):
        raise Refused("its argument is a generator expression without brackets of its own")
    pieces = _Rewrite(text, parts, arguments, dropped, put).run()
    return Revision(tuple(_in_order(text, pieces)), len(text)).edits()


def _in_order(text: str, pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Pieces of the old text that are not in its order become text: only the others stay where they were."""
    at = 0
    for piece in pieces:
        if isinstance(piece, Kept) and piece.start >= at:
            at = piece.end
            yield piece
        else:
            yield piece if isinstance(piece, str) else text[piece.start : piece.end]


# taking a call apart


@dataclass(frozen=True, slots=True)
class Part:
    """Where an argument stands in a call's text: itself, its value, its comma, and the next thing after that."""

    start: int
    value_start: int
    bracketed: bool
    """Whether the value stands in brackets of its own: ``(a) or (b)`` does not."""
    end: int
    comma: int | None
    next: int


@dataclass(frozen=True, slots=True)
class Parts:
    """Where a call's arguments stand: ``opening`` is after the bracket, ``first`` where the first argument starts."""

    opening: int
    first: int
    arguments: tuple[Part, ...]


def take_apart(text: str) -> Parts:
    """Where the arguments of a call's source text stand. Raises Refused when LibCST does not give the text back."""
    import libcst as cst

    try:
        node = cst.parse_expression(f"({text})")
        written = _writer(node, f"({text})")
    except cst.ParserSyntaxError:
        raise Refused("LibCST cannot parse the call") from None
    except RecursionError:  # thousands of `or`, or of strings in a row, are deep in LibCST alone
        raise Refused("the call is too deep for LibCST") from None
    if not isinstance(node, cst.Call) or len(node.lpar) != 1:
        raise Refused("LibCST does not see a call there")
    opening = len(written(node.func)) + len(written(node.whitespace_after_func)) + 1
    at = first = opening + len(written(node.whitespace_before_args))
    found = []
    for argument in node.args:
        bare = argument.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=cst.SimpleWhitespace(""))
        start, end = at, at + len(written(bare))
        comma, at = None, end + len(written(argument.whitespace_after_arg))
        if isinstance(argument.comma, cst.Comma):
            comma = end + len(written(argument.comma.whitespace_before))
            at += len(written(argument.comma))
        value = argument.value
        found.append(Part(start, end - len(written(value)), bool(value.lpar), end, comma, at))
    if text[opening - 1] != "(" or at != len(text) - 1:
        raise Refused("LibCST does not give the call's text back as it was")
    return Parts(opening, first, tuple(found))


def _writer(node: libcst.CSTNode, text: str) -> Callable[[libcst.CSTNode], str]:
    """What turns nodes into text again, with the line end that gives back this very text."""
    import libcst as cst

    for newline in ("\n", "\r\n", "\r"):
        write = cst.Module([], default_newline=newline).code_for_node
        if write(node) == text:
            return write
    raise Refused("LibCST does not give the call's text back as it was")


# putting it together again


@dataclass(slots=True)
class _Item:
    """An argument of the new call: what stands before it, itself, and its old comma with the blank before that."""

    gap: list[Piece]
    body: list[Piece]
    blank: list[Piece]
    comma: list[Piece]


class _Rewrite:
    """One rewrite of one call's text."""

    def __init__(
        self,
        text: str,
        parts: Parts,
        arguments: Sequence[Argument],
        dropped: frozenset[str],
        put: Mapping[str, NewValue],
    ) -> None:
        self._text = text
        self._parts = parts
        self._arguments = arguments
        self._dropped = dropped - put.keys()
        self._put = dict(put)
        pairs = zip(arguments, parts.arguments, strict=True)
        self._part_of = {argument.parameter: part for argument, part in pairs if argument.parameter}
        self._items: list[_Item] = []
        self._closing: list[Piece] = []

    def run(self) -> list[Piece]:
        self._fill()
        for name in list(self._put):
            self._append(name)
        out: list[Piece] = [Kept(0, self._parts.opening)]
        blank: list[Piece] = []
        comma: list[Piece] = []
        for item in self._items:
            out += [*blank, *comma, *item.gap, *item.body]
            blank, comma = item.blank, item.comma or [","]
        if self._parts.arguments and self._parts.arguments[-1].comma is not None:
            out += [*blank, *comma, *self._closing]
        else:  # the comma of what is the last argument now goes, a comment before it does not
            out += self._closed(blank, self._closing) if "#" in self._written(blank) else self._closing
        return [*out, Kept(len(self._text) - 1, len(self._text))]

    def _fill(self) -> None:
        """The arguments that stay, and what separates them when others go."""
        gap: list[Piece] = [Kept(self._parts.opening, self._parts.first)]
        last = len(self._parts.arguments) - 1
        for index, (part, body) in enumerate(zip(self._parts.arguments, self._bodies(), strict=True)):
            after: list[Piece] = [Kept(part.end if part.comma is None else part.comma + 1, part.next)]
            if body is not None:
                comma = part.comma
                blank: list[Piece] = [] if comma is None else [Kept(part.end, comma)]
                self._items.append(_Item(gap, body, blank, [] if comma is None else [Kept(comma, comma + 1)]))
                gap = after
                continue
            self._refuse_comment(part)
            gap = self._closed(gap, after) if index == last else self._merged(gap, after)
        self._closing = gap

    # the new text of each argument

    def _bodies(self) -> Iterator[list[Piece] | None]:
        """For each argument its new text, or None when it goes."""
        place = self._place_for_new()
        shifted = False
        for index, (argument, part) in enumerate(zip(self._arguments, self._parts.arguments, strict=True)):
            stays = argument.parameter not in self._dropped
            if argument.parameter in self._put:
                yield self._new(argument.parameter, argument, part, shifted=shifted)
            elif index == place:
                yield self._new(next(iter(self._put)), argument, part, shifted=shifted)
            elif not stays:
                yield None
            elif shifted and not argument.named:
                yield self._named(argument, part)
            else:
                yield [Kept(part.start, part.end)]
            shifted = shifted or (not argument.named and not stays)

    def _place_for_new(self) -> int | None:
        """The dropped argument whose place a new one takes: no argument without a name may follow."""
        if not self._put or any(argument.parameter in self._put for argument in self._arguments):
            return None
        stays = [argument.parameter not in self._dropped for argument in self._arguments]
        for index, argument in enumerate(self._arguments):
            later = range(index + 1, len(self._arguments))
            if argument.parameter in self._dropped and all(self._arguments[i].named or not stays[i] for i in later):
                return index
        return None

    def _new(self, name: str, argument: Argument, part: Part, *, shifted: bool) -> list[Piece]:
        self._refuse_comment(part)
        value = self._value(self._put.pop(name))
        if not argument.named and argument.parameter == name and not shifted:
            return value
        if not argument.named:
            return [f"{name}=", *value]
        if argument.parameter == name:
            return [Kept(part.start, part.value_start), *value]
        written = self._text[part.start : self._text.index("=", part.start)].rstrip()
        return [name, Kept(part.start + len(written), part.value_start), *value]

    def _named(self, argument: Argument, part: Part) -> list[Piece]:
        if argument.parameter is None:
            raise Refused("the arguments after the dropped one cannot be named")
        body: list[Piece] = [Kept(part.start, part.end)]
        if isinstance(argument.value, ast.NamedExpr) and not part.bracketed:
            body = ["(", *body, ")"]
        return [f"{argument.parameter}=", *body]

    def _value(self, pieces: NewValue) -> list[Piece]:
        out: list[Piece] = []
        for piece in pieces:
            if isinstance(piece, str):
                out.append(piece)
                continue
            part = self._part_of[piece.parameter]
            kept = Kept(part.value_start, part.end)
            out += ["(", kept, ")"] if piece.brackets and not part.bracketed else [kept]
        return out

    def _append(self, name: str) -> None:
        """A new last argument, laid out as the last one is."""
        value = self._value(self._put.pop(name))
        closing = self._written(self._closing)
        if not self._items:
            self._items.append(_Item([], [f"{name}=", *value], [], []))
            return
        parts = self._parts
        before = (parts.arguments[-2].comma or 0) + 1 if len(parts.arguments) > 1 else parts.opening
        style = self._text[before : parts.arguments[-1].start] if parts.arguments else ""
        newline = next((end for end in ("\r\n", "\n", "\r") if end in style), "")
        gap = newline + style.rpartition(newline)[2] if newline else " "
        if "#" in closing:  # a comment on the line of the argument that was the last
            end = closing.rindex("\n" if "\n" in closing else "\r")
            end -= closing[end - 1 : end] == "\r"
            gap, closing = (closing[:end] + gap, closing[end:]) if newline else (closing, "")
            self._closing = [closing]
        self._items.append(_Item([gap], [f"{name}=", *value], [], []))

    def _refuse_comment(self, part: Part) -> None:
        if "#" in self._text[part.start : part.comma or part.end]:
            raise Refused("there may be a comment inside the argument that would go")

    # gaps: the white space and the comments between arguments

    def _merged(self, gap: list[Piece], later: list[Piece]) -> list[Piece]:
        """What separates two arguments when one between them goes: no comment is lost, no line is left empty."""
        first, second = self._written(gap), self._written(later)
        if "#" in second and _breaks_line(second):
            return [_without_last_line(first), *later]
        if "#" in second:
            return [*gap, second.lstrip(" \t")] if first.strip(" \t") else later
        breaks_only_later = ("\n" in second or "\r" in second) and not ("\n" in first or "\r" in first)
        return later if breaks_only_later and self._items else gap

    def _closed(self, gap: list[Piece], final: list[Piece]) -> list[Piece]:
        """What stands before the closing bracket when the last argument goes."""
        first, second = self._written(gap), self._written(final)
        if "#" in second:
            return self._merged(gap, final)
        if "#" in first:
            return [_without_last_line(first), *final] if _breaks_line(second) else gap
        return final

    def _written(self, pieces: Sequence[Piece]) -> str:
        return "".join(p if isinstance(p, str) else self._text[p.start : p.end] for p in pieces)


def _breaks_line(gap: str) -> bool:
    """Whether the line ends where a gap starts: a comment before it stays a comment."""
    return gap.lstrip(" \t\f")[:1] in ("\r", "\n")


def _without_last_line(gap: str) -> str:
    """A gap without its last line, which is blank; what a backslash continues stays."""
    head = gap.rstrip(" \t\f")
    shorter = head.removesuffix("\n").removesuffix("\r")
    return head if shorter.endswith("\\") else shorter
