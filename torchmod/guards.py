"""What must hold of a changed text before it may be written; a guard that fails leaves the file as it was.

The old and the new tree are walked in parallel. The smallest nodes that enclose an edit may differ; all else must be
equal, and what an edit carries over must still stand, equal, at its new place. So ``torch.div(a, b) ** 2`` can not
become ``a // b ** 2``.
"""

from __future__ import annotations

import ast
import tokenize
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

from torchmod.model import Edit, Span
from torchmod.names import Names
from torchmod.source import Source

_BLANK = " \t\f\r\n"


class GuardError(Exception):
    """A changed text that must not be written; the message says why."""


class Shift:
    """Where offsets of a text are found after its edits."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self.edits = sorted(edits)
        self._starts = [edit.start for edit in self.edits]
        self._ends = [edit.end for edit in self.edits]
        self._moved = [0, *accumulate(len(e.text) - (e.end - e.start) for e in self.edits)]
        # white space alone moves things and changes nothing
        self._real = [e for e in self.edits if e.start < e.end or e.text.strip(_BLANK)]
        self._real_starts = [edit.start for edit in self._real]

    def span(self, span: Span) -> Span:
        """Where a span is found: without what was inserted right before or after it."""
        start = span.start + self._moved[bisect_right(self._ends, span.start)]
        return Span(start, span.end + self._moved[bisect_left(self._starts, span.end)])

    def spans(self, span: Span) -> Iterator[Span]:
        """Where a span may be found: what was inserted right before or after it may have become part of it."""
        narrow = self.span(span)
        before = sum(len(e.text) for e in self.edits if e.start == e.end == span.start)
        after = sum(len(e.text) for e in self.edits if e.start == e.end == span.end)
        for start in {narrow.start: 0, narrow.start - before: 0}:
            for end in {narrow.end: 0, narrow.end + after: 0}:
                yield Span(start, end)

    def written(self) -> Iterator[Span]:
        """The spans of the new text that edits wrote."""
        for edit, moved in zip(self.edits, self._moved, strict=False):
            yield Span(edit.start + moved, edit.start + moved + len(edit.text))

    def within(self, span: Span) -> list[Edit]:
        """The edits that touch a span, its two ends included; white space that is only inserted does not count."""
        low = bisect_left(self._real_starts, span.start)
        while low and self._real[low - 1].end >= span.start:
            low -= 1
        return self._real[low : bisect_right(self._real_starts, span.end)]


def check_python(old: Source, old_names: Names, new: Source, new_names: Names, edits: Sequence[Edit]) -> None:
    """All guards for one pass over a Python file; raises GuardError."""
    check_text(old, new, edits)
    shift = Shift(edits)
    _Trees(old, new, shift).check(old_names.tree, new_names.tree)
    _check_names(new, old_names, new_names, shift)
    if any("#" in old.text[e.start : e.end] for e in edits):
        _check_comments(old, new)


def check_text(old: Source, new: Source, edits: Sequence[Edit]) -> None:
    """What must hold of any text: it can be written in the file's encoding, and its line ends are the file's own."""
    try:
        new.encode(new.text)
    except UnicodeEncodeError as error:
        raise GuardError(f"the new text cannot be written in the file's encoding: {error}") from None
    if any(end not in old.text for end in ("\r", "\n") if end in new.text and "\n" in old.text):
        raise GuardError("the new text has line ends that the file does not have")
    inserted_crlf = old.newline == "\r\n" and any("\n" in edit.text.replace("\r\n", "") for edit in edits)
    if inserted_crlf:
        raise GuardError("a line end was inserted that is not the file's own")
    if old.text[-1:] in "\r\n" and new.text and new.text[-1] not in "\r\n":
        raise GuardError("the line end at the end of the file was lost")


def _check_names(new: Source, old_names: Names, names: Names, shift: Shift) -> None:
    """Every name that an edit wrote is bound where it stands (or was unbound before)."""
    written = [span for span in shift.written() if span.start < span.end]
    if not written:
        return
    starts = [span.start for span in written]
    for node in ast.walk(names.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and not names.is_bound(node):
            at = new.span(node)
            index = bisect_right(starts, at.start) - 1
            if index >= 0 and at in written[index] and node.id not in _unbound(old_names):
                raise GuardError(f"line {node.lineno}: the new text uses `{node.id}`, which is not defined there")


def _unbound(names: Names) -> set[str]:
    return {node.id for node in ast.walk(names.tree) if isinstance(node, ast.Name) and not names.is_bound(node)}


def _check_comments(old: Source, new: Source) -> None:
    before, after = _comments(old), _comments(new)
    for comment in before - after:
        raise GuardError(f"the comment `{comment}` would be lost")


def _comments(source: Source) -> Counter[str]:
    return Counter(token.string.rstrip() for token in source.tokens() if token.type == tokenize.COMMENT)


class _Trees:
    """The parallel walk."""

    def __init__(self, old: Source, new: Source, shift: Shift) -> None:
        self._old = old
        self._new = new
        self._shift = shift
        self._at: dict[tuple[int, int], list[ast.AST]] = {}

    def check(self, old: ast.Module, new: ast.Module) -> None:
        for node in ast.walk(new):
            if hasattr(node, "lineno"):
                span = _extent(self._new, node)
                self._at.setdefault((span.start, span.end), []).append(node)
        pairs: list[tuple[ast.AST, ast.AST]] = [(old, new)]
        while pairs:
            pairs += self._pair(*pairs.pop())

    def _pair(self, old: ast.AST, new: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Compare two nodes that stand for each other; gives the pairs below them that are still to be compared."""
        whole = not hasattr(old, "lineno")
        span = Span(0, len(self._old.text)) if whole else _extent(self._old, old)
        edits = self._shift.within(span)
        children = list(_positioned(old))
        spans = [_extent(self._old, child) for child in children]
        loose = [e for e in edits if e.span in span and not any(_holds(s, e) for s in spans)]
        if not loose:
            others = list(_positioned(new))
            if _shape(old) == _shape(new) and len(children) == len(others):
                for child, child_span, other in zip(children, spans, others, strict=True):
                    if self._shift.within(child_span):
                        yield child, other
                    elif not same(child, other):
                        raise self._broken(child)
                return
            # an edit may make another kind of child of one that it replaces whole: a named argument of a plain one
            loose = [e for e in edits if e.span in spans]
            if not loose or _shape(old, children=False) != _shape(new, children=False):
                raise self._broken(old)
        for child, child_span in zip(children, spans, strict=True):
            yield from self._carried(child, child_span, loose)

    def _carried(self, child: ast.AST, span: Span, loose: Sequence[Edit]) -> Iterator[tuple[ast.AST, ast.AST]]:
        """A child of a node that an edit changes: gone with the edit, or found at its new place."""
        if any(edit.start <= span.start and span.end <= edit.end and edit.start < edit.end for edit in loose):
            return
        inner = self._shift.within(span)
        candidates = self._located(self._shift.span(span))
        if not any(e.start < span.end and span.start < e.end for e in inner):  # untouched, but for its two ends
            if any(type(c) is type(child) and same(child, c) for c in candidates):
                return
            if not inner:
                raise self._broken(child)
        candidates = [node for where in self._shift.spans(span) for node in self._located(where)]
        match = next((c for c in candidates if type(c) is type(child)), next(iter(candidates), None))
        if match is None:
            if any(e.span not in span for e in inner):  # an edit runs over its border: look at what is inside
                for grandchild in _positioned(child):
                    yield from self._carried(grandchild, _extent(self._old, grandchild), loose)
                return
            raise self._broken(child)
        yield child, match

    def _located(self, span: Span) -> list[ast.AST]:
        """The nodes of the new tree at a span, brackets round them not counted."""
        start, end, text = span.start, span.end, self._new.text
        while start < end:
            if (start, end) in self._at:
                return self._at[start, end]
            if text[start] in _BLANK + "(":
                start += 1
            elif text[end - 1] in _BLANK + ")":
                end -= 1
            else:
                break
        return []

    def _broken(self, node: ast.AST) -> GuardError:
        line = getattr(node, "lineno", 1)
        return GuardError(f"line {line}: an edit would change code that it must not touch ({type(node).__name__})")


def _extent(source: Source, node: ast.AST) -> Span:
    """The span of a node, its decorators included."""
    span = source.span(node)
    return Span(min([span.start, *(source.span(d).start for d in getattr(node, "decorator_list", ()))]), span.end)


def _holds(span: Span, edit: Edit) -> bool:
    """Whether an edit lies in a span; an insertion at a span's end is outside it."""
    if edit.start == edit.end:
        return span.start < edit.start < span.end
    return edit.span in span


def _positioned(node: ast.AST) -> Iterator[ast.AST]:
    """The nearest nodes below one that have a position."""
    for child in ast.iter_child_nodes(node):
        if hasattr(child, "lineno"):
            yield child
        else:
            yield from _positioned(child)


def _shape(node: ast.AST, *, children: bool = True) -> list[object]:
    """A node's type and plain fields, through children without a position; and where its other ``children`` are."""
    found: list[object] = [type(node)]
    for name, value in ast.iter_fields(node):
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, ast.AST):
                found += [name, type(item), item]
            elif not hasattr(item, "lineno"):
                found += [name, *_shape(item, children=children)]
            elif children:
                found += [name, "·"]
    return found


def same(one: ast.AST, other: ast.AST) -> bool:
    """Whether two trees are equal, positions aside."""
    pairs: list[tuple[object, object]] = [(one, other)]
    while pairs:
        a, b = pairs.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, ast.AST) and isinstance(b, ast.AST):
            fields = a._fields
            pairs += [(getattr(a, name, None), getattr(b, name, None)) for name in fields]
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            pairs += zip(a, b, strict=True)
        elif a != b and not (a != a and b != b):  # nan  # noqa: PLR0124
            return False
    return True
