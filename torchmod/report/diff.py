"""A unified diff that `git apply` and `patch` take: the files' own bytes, whatever their encoding."""

from __future__ import annotations

from collections.abc import Iterator

from torchmod.model import Outcome
from torchmod.report.view import paint
from torchmod.runner import Run

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def diff(run: Run, *, colour: bool = False) -> bytes:
    """The changes of a run, file by file."""
    lines = [line for outcome in run.changed for line in _file(outcome, colour=colour)]
    return "".join(lines).encode("utf-8", "surrogateescape")


def _file(outcome: Outcome, *, colour: bool) -> Iterator[str]:
    import difflib

    before, after = _lines(outcome.old or b""), _lines(outcome.new or b"")
    names = _name(f"a/{outcome.path}"), _name(f"b/{outcome.path}")
    for index, line in enumerate(difflib.unified_diff(before, after, *names)):
        style = "bold" if index < len(names) else _STYLES.get(line[0])
        body = line.removesuffix("\n")
        yield f"{paint(body, style, colour=colour)}\n" if style else f"{body}\n"
        if body == line:
            yield "\\ No newline at end of file\n"


def _name(path: str) -> str:
    """A name as git writes it: in quotes where it must be, and with a tab after one that holds a blank."""
    if any(character < " " or character in '"\\' for character in path):
        return f'"{"".join(map(_escaped, path))}"'
    return f"{path}\t" if " " in path else path  # without the tab `patch` takes the first word only


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character >= " " else f"\\{ord(character):03o}"


def _lines(data: bytes) -> list[str]:
    """Lines as git counts them; bytes that are not UTF-8 come out again as they were."""
    *lines, last = data.decode("utf-8", "surrogateescape").split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])
