"""What must hold of a changed text before it may be written; a guard that fails leaves the file as it was.

The syntax trees are compared by `trees`. What else must hold: it compiles, no word runs into another, every name is
bound, no comment is lost, and encoding and line ends are the file's own.
"""

from __future__ import annotations

import ast
import tokenize
import warnings
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

from torchmod.edits import apply
from torchmod.model import Edit, Span, Unreadable, Wrapper
from torchmod.names import Names
from torchmod.source import Source
from torchmod.trees import GuardError, Shift, Trees, extent

_COMMENT_MARKS = ("#", '"""', "'''", "\\")
"""A line without any of these neither holds a comment nor decides whether a later line is one."""


def check_python(  # noqa: PLR0913
    old: Source,
    old_names: Names,
    new: Source,
    new_names: Names,
    edits: Sequence[Edit],
    *,
    wrappers: Sequence[Wrapper] = (),
) -> None:
    """All guards for one pass over a Python file; raises GuardError."""
    check_text(old, new, edits)
    shift = Shift(edits)
    _check_compiles(old_names.tree, new_names.tree)
    _check_words(old, new, shift)
    trees = Trees(old, new, shift)
    trees.check(old_names.tree, new_names.tree)
    _check_indents(old, old_names.tree, new, new_names.tree, shift)
    for wrapper in wrappers:
        trees.check_wrapper(wrapper, old_names.tree, new_names.tree)
    _check_names(old_names, new_names)
    _check_comments(old, new, shift)


def check_text(old: Source, new: Source, edits: Sequence[Edit]) -> None:
    """What must hold of any text: it differs at the edits only, is read back as it was written, keeps its line ends."""
    if apply(old.text, edits) != new.text:
        raise GuardError("the text has changed outside the edits")
    try:
        encoding = Source.decode(new.path, new.encode(new.text)).encoding
    except (UnicodeEncodeError, Unreadable) as error:
        raise GuardError(f"the new text cannot be written in the file's encoding: {error}") from None
    if encoding != old.encoding:
        raise GuardError(f"the new text would be read as {encoding}, the file is {old.encoding}")
    known, ends = _line_ends(old.text), _line_ends(new.text)
    if known and not ends <= known:
        raise GuardError("the new text has line ends that the file does not have")
    if old.text and new.text and old.text.endswith(("\r", "\n")) != new.text.endswith(("\r", "\n")):
        raise GuardError("the line end at the end of the file was lost, or one was added")


def _check_indents(old: Source, old_tree: ast.Module, new: Source, new_tree: ast.Module, shift: Shift) -> None:
    """Statements that an edit wrote in the place of others stand in the block that those stood in."""
    before, after = _statements(old, old_tree), _statements(new, new_tree)
    for edit, written in zip(shift.edits, shift.written(), strict=True):
        gone = [column for span, column in _from(before, edit.start, edit.end) if span.end <= edit.end]
        come = [column for _, column in _from(after, written.start, written.end)]
        if gone and come and min(gone) != min(come):
            raise GuardError(f"line {old.line_at(edit.start)}: a statement would be moved to another block")


def _statements(source: Source, tree: ast.Module) -> list[tuple[Span, int]]:
    """All statements in the order of the text, with the column of their block."""
    found = [(extent(source, node), node.col_offset) for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    return sorted(found)


def _from(statements: Sequence[tuple[Span, int]], start: int, end: int) -> Sequence[tuple[Span, int]]:
    """Those of the statements that start in a stretch of text."""
    low = bisect_left(statements, start, key=lambda one: one[0].start)
    return statements[low : bisect_left(statements, end, key=lambda one: one[0].start)]


def _check_compiles(old: ast.Module, new: ast.Module) -> None:
    """The compiler takes it, if it took the old text: the parser alone lets a repeated argument pass."""
    problem = _compiler_problem(new)
    if problem and not _compiler_problem(old):
        raise GuardError(f"the new text is no longer Python: {problem}")


def _compiler_problem(tree: ast.Module) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(tree, "<new text>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or type(error).__name__
    return ""


def _line_ends(text: str) -> set[str]:
    single = text.replace("\r\n", "")
    return {end for end in ("\r", "\n") if end in single} | ({"\r\n"} if len(single) < len(text) else set())


def _check_words(old: Source, new: Source, shift: Shift) -> None:
    """No edit makes one word of two, or runs into the word beside it: taking the space out of ``not x`` does."""
    for edit, written in zip(shift.edits, shift.written(), strict=True):
        for before, after in ((edit.start, written.start), (edit.end, written.end)):
            if _in_word(new.text, after) and not _in_word(old.text, before):
                raise GuardError(f"line {new.line_at(after)}: an edit would change the word beside it")


def _in_word(text: str, offset: int) -> bool:
    """Whether the characters before and after an offset belong to one word."""
    around = text[max(0, offset - 1) : offset + 1]
    return len(around) == 2 and all(f"a{character}".isidentifier() for character in around)


def _check_names(old: Names, new: Names) -> None:
    """Every name is bound where it stands, or was not bound before."""
    known = {node.id for node in _unbound(old)}
    for node in _unbound(new):
        if node.id not in known:
            raise GuardError(f"line {node.lineno}: the new text uses `{node.id}`, which is not defined there")


def _unbound(names: Names) -> Iterator[ast.Name]:
    for node in ast.walk(names.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and not names.is_bound(node):
            yield node


def _check_comments(old: Source, new: Source, shift: Shift) -> None:
    """No comment is lost, cut or made part of a string."""
    lines = [_lines(old, edit.span) for edit in shift.edits] + [_lines(new, span) for span in shift.written()]
    if not any(mark in text for text in lines for mark in _COMMENT_MARKS):
        return
    try:
        lost = _comments(old) - _comments(new)
    except Unreadable as error:
        raise GuardError(f"the comments cannot be compared: {error}") from None
    for comment in lost:
        raise GuardError(f"the comment `{comment}` would be lost")


def _lines(source: Source, span: Span) -> str:
    """The lines that a span touches."""
    first, last = source.line_span(source.line_at(span.start)), source.line_span(source.line_at(span.end))
    return source.text[first.start : last.end]


def _comments(source: Source) -> Counter[str]:
    return Counter(token.string.rstrip() for token in source.tokens() if token.type == tokenize.COMMENT)
