"""The parallel walk over the tree before and after some edits: what they did not touch must be the same.

The smallest nodes that enclose an edit may differ; all else must be equal, and what an edit carries over must still
stand, equal, at its new place. So ``torch.div(a, b) ** 2`` can not become ``a // b ** 2``.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate

from torchmod.model import Edit, Span, Wrapper
from torchmod.regions import start_of
from torchmod.source import Source

BLANK = " \t\f\r\n"


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
        self._real = [e for e in self.edits if e.start < e.end or e.text.strip(BLANK)]
        self._real_starts = [edit.start for edit in self._real]

    def span(self, span: Span) -> Span:
        """Where a span is found: without what was inserted right before or after it."""
        start = span.start + self._moved[bisect_right(self._ends, span.start)]
        return Span(start, span.end + self._moved[bisect_left(self._starts, span.end)])

    def spans(self, span: Span) -> Iterator[Span]:
        """Where a span may be found: some of what was written right before or after it may have become part of it."""
        narrow = self.span(span)
        left = slice(bisect_left(self._ends, span.start), bisect_right(self._ends, span.start))
        right = slice(bisect_left(self._starts, span.end), bisect_right(self._starts, span.end))
        before, after = (sum(len(e.text) for e in self.edits[touching]) for touching in (left, right))
        for start in range(narrow.start, narrow.start - before - 1, -1):
            for end in range(narrow.end, narrow.end + after + 1):
                yield Span(start, end)

    def written(self) -> Iterator[Span]:
        """The spans of the new text that edits wrote."""
        for edit, moved in zip(self.edits, self._moved, strict=False):
            yield Span(edit.start + moved, edit.start + moved + len(edit.text))

    def over(self, span: Span) -> Span | None:
        """What was written over all of a span, by the edit that replaces it; None where none does."""
        index = bisect_right(self._starts, span.start) - 1
        edit = self.edits[index] if index >= 0 else None
        if edit is None or edit.start == edit.end or span not in edit.span:
            return None
        start = edit.start + self._moved[index]
        return Span(start, start + len(edit.text))

    def within(self, span: Span) -> list[Edit]:
        """The edits that touch a span, its two ends included; white space that is only inserted does not count."""
        low = bisect_left(self._real_starts, span.start)
        while low and self._real[low - 1].end >= span.start:
            low -= 1
        return self._real[low : bisect_right(self._real_starts, span.end)]


class Trees:
    """The parallel walk."""

    def __init__(self, old: Source, new: Source, shift: Shift) -> None:
        self._old = old
        self._new = new
        self._shift = shift
        self._written = list(shift.written())
        self._at: dict[tuple[int, int], list[ast.AST]] = {}
        self._ends: dict[int, set[int]] = defaultdict(set)
        self._blocks: dict[ast.AST, tuple[ast.AST, str]] = {}

    def check(self, old: ast.Module, new: ast.Module) -> None:
        self._blocks = {**_blocks(old), **_blocks(new)}
        for node in ast.walk(new):
            if hasattr(node, "lineno"):
                span = extent(self._new, node)
                self._at.setdefault((span.start, span.end), []).append(node)
                self._ends[span.start].add(span.end)
        pairs: list[tuple[ast.AST, ast.AST]] = [(old, new)]
        while pairs:
            pairs += self._pair(*pairs.pop())

    def check_wrapper(self, wrapper: Wrapper, old: ast.Module, new: ast.Module) -> None:
        """The statements of a wrapped region, and no others, stand under the new header."""
        blocks = _blocks(old)
        region = {statement for statement in blocks if extent(self._old, statement) in wrapper.region}
        outer = [statement for statement in region if blocks[statement][0] not in region]
        wanted = sorted(self._shift.span(extent(self._old, statement)).start for statement in outer)
        for node in ast.walk(new):
            if not isinstance(node, ast.With | ast.AsyncWith) or not self._new.of(node).startswith(wrapper.header):
                continue
            if [start_of(self._new, statement) for statement in node.body] == wanted:
                return
        line = self._old.line_at(wrapper.region.start)
        raise GuardError(f"line {line}: `{wrapper.header}` would not be over the statements that it was meant for")

    def _pair(self, old: ast.AST, new: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Compare two nodes that stand for each other; gives the pairs below them that are still to be compared."""
        whole = not hasattr(old, "lineno")
        span = Span(0, len(self._old.text)) if whole else extent(self._old, old)
        edits = self._shift.within(span)
        children = list(_positioned(old))
        spans = [extent(self._old, child) for child in children]
        bracketed = spans
        if isinstance(old, ast.expr):  # the last bracket of a call is its own
            limit = Span(span.start, span.end - isinstance(old, ast.Call))
            bracketed = [self._bracketed(child_span, limit) for child_span in spans]
        loose = _outside(bracketed, [edit for edit in edits if edit.span in span])
        if not loose:
            others = list(_positioned(new))
            if _shape(old) == _shape(new) and len(children) == len(others):
                for child, child_span, other in zip(children, spans, others, strict=True):
                    yield from self._in_place(child, child_span, other)
                return
            # an edit may make another kind of child of one that it replaces whole: a named argument of a plain one
            replaced = {edit.span for edit in edits} & {*spans, *bracketed}
            if not replaced or _shape(old, children=False) != _shape(new, children=False):
                raise self._broken(old)
        for child, child_span in zip(children, spans, strict=True):
            for carried, found in self._carried(child, child_span):
                if carried is child and not self._stays(child, found, old, new):
                    raise self._broken(child)
                if not same(carried, found):
                    yield carried, found

    def _in_place(self, child: ast.AST, span: Span, other: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """A child of a node that no edit changes, and what stands in its place: replaced whole, edited, or the same."""
        written = self._shift.over(span)
        if written is None and self._shift.within(span):
            yield child, other
        elif not (same(child, other) if written is None else extent(self._new, other) in written):
            raise self._broken(child)

    def _bracketed(self, span: Span, limit: Span) -> Span:
        """A span with the brackets round it: they hold the node together, and go or stay with it."""
        text = self._old.text
        while True:
            start, end = span.start, span.end
            while start > limit.start and text[start - 1] in BLANK:
                start -= 1
            while end < limit.end and text[end] in BLANK:
                end += 1
            if start == limit.start or end >= limit.end or text[start - 1] + text[end] != "()":
                return span
            span = Span(start - 1, end + 1)

    def _stays(self, child: ast.AST, found: ast.AST, old: ast.AST, new: ast.AST) -> bool:
        """Whether a statement stands in the block it stood in; a ``with`` that an edit wrote does not count."""
        owner, field = self._blocks.get(child, (None, ""))
        if owner is not old:  # no statement, or one in a `case`
            return True
        at = self._blocks.get(found)
        while at is not None and isinstance(at[0], ast.With | ast.AsyncWith) and at[0] is not new:
            start = self._new.span(at[0]).start
            if not any(span.start <= start < span.end for span in self._written):
                return False
            at = self._blocks.get(at[0])
        return at == (new, field)

    def _carried(self, child: ast.AST, span: Span) -> Iterator[tuple[ast.AST, ast.AST]]:
        """A child of a node that an edit changes: gone with the edit, or found at its new place."""
        inner = self._shift.within(span)
        if self._shift.over(span) is not None:
            return
        if not any(e.start < span.end and span.start < e.end for e in inner):  # untouched, but for its two ends
            found = next((c for c in self._located(self._shift.span(span)) if same(child, c)), None)
            if found is not None:
                yield child, found
                return
            if not inner or isinstance(child, ast.Name | ast.Constant):
                raise self._broken(child)
        if any(e.start < at < e.end for e in inner for at in (span.start, span.end)):
            for grandchild in _positioned(child):  # an edit runs over its border: look at what is inside
                yield from self._carried(grandchild, extent(self._old, grandchild))
            return
        candidates = [node for where in self._shift.spans(span) for node in self._located(where)]
        if any(e.start == span.end < e.end for e in inner):  # it may go on in what the edit joins to it
            candidates += self._longer(child, self._shift.span(span))
        candidates = [c for c in candidates if isinstance(c, ast.stmt) == isinstance(child, ast.stmt)]
        match = next((c for c in candidates if type(c) is type(child)), next(iter(candidates), None))
        if match is None:
            raise self._broken(child)
        yield child, match

    def _located(self, span: Span) -> list[ast.AST]:
        """The nodes of the new tree at a span."""
        return self._at.get((span.start, span.end), [])

    def _longer(self, child: ast.AST, span: Span) -> list[ast.AST]:
        """The nodes of a child's kind that start where a span of the new text does and go on after it."""
        ends = sorted(end for end in self._ends[span.start] if end > span.end)
        return [node for end in ends for node in self._at[span.start, end] if type(node) is type(child)]

    def _broken(self, node: ast.AST) -> GuardError:
        line = getattr(node, "lineno", 1)
        return GuardError(f"line {line}: an edit would change code that it must not touch ({type(node).__name__})")


def extent(source: Source, node: ast.AST) -> Span:
    """The span of a node, its decorators included."""
    return Span(start_of(source, node), source.span(node).end)


def _blocks(tree: ast.Module) -> dict[ast.AST, tuple[ast.AST, str]]:
    """For each statement the node and the field that it stands in."""
    return {
        statement: (node, field)
        for node in ast.walk(tree)
        for field, value in ast.iter_fields(node)
        if isinstance(value, list)
        for statement in value
        if isinstance(statement, ast.stmt)
    }


def _outside(spans: Sequence[Span], edits: Sequence[Edit]) -> list[Edit]:
    """The edits that lie in none of the spans; an insertion at either end of a span lies outside it."""
    ordered = sorted(spans)
    starts = [span.start for span in ordered]
    reach = [-1, *accumulate((span.end for span in ordered), max)]
    found = []
    for edit in edits:
        if edit.start == edit.end:
            held = reach[bisect_left(starts, edit.start)] > edit.end
        else:
            held = reach[bisect_right(starts, edit.start)] >= edit.end
        if not held:
            found.append(edit)
    return found


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
        elif a != b:
            return False
    return True
