"""A unified diff that `git apply` and `patch` take: the files' own bytes, whatever their encoding."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from torchmod.report.view import paint
from torchmod.runner import Run

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def diff(run: Run, *, colour: bool = False) -> bytes:
    """The changes of a run, file by file."""
    lines = (line for outcome in run.changed for line in _file(outcome.path, outcome.old or b"", outcome.new or b""))
    return "".join(_painted(line) if colour else line for line in lines).encode("utf-8", "surrogateescape")


def _file(path: str, old: bytes, new: bytes) -> Iterator[str]:
    before, after = _lines(old), _lines(new)
    for line in difflib.unified_diff(before, after, _name(f"a/{path}"), _name(f"b/{path}")):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


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


def _painted(line: str) -> str:
    style = "bold" if line.startswith(("+++", "---")) else _STYLES.get(line[:1])
    body = line.rstrip("\n")
    return f"{paint(body, style, colour=True)}\n" if style else line
