"""Words that a user gives: the nearest right one for a wrong one, and versions."""

from __future__ import annotations

from collections.abc import Iterable

from torchmod.basics import TorchmodError


def nearest(word: str, words: Iterable[str]) -> str:
    """``; did you mean …?`` with the likeliest word, or nothing."""
    import difflib

    close = difflib.get_close_matches(word, list(words), 1, 0.5)
    return f"; did you mean `{close[0]}`?" if close else ""


def version(text: str) -> tuple[int, ...]:
    """The numbers of a version such as ``1.10`` or ``0.4.1``, three at least, so that 1.0 is not less than 1.0.0.

    Raises TorchmodError when it is none.
    """
    numbers = text.split(".")
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise TorchmodError(f"`{text}` is not a version: write it like 1.10 or 0.4.1")
    return (*(int(number) for number in numbers), 0, 0)[: max(3, len(numbers))]
