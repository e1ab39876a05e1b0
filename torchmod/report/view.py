"""How the user wants to be told."""

from __future__ import annotations

import os
from typing import NamedTuple, TextIO


class View(NamedTuple):
    """What is printed, and how."""

    command: str
    """``check``, ``diff`` or ``fix``."""
    format: str = "text"
    verbose: bool = False
    quiet: bool = False
    colour: bool = False


def wants_colour(stream: TextIO) -> bool:
    """Whether to colour what goes to a stream: NO_COLOR and FORCE_COLOR decide, else whether it is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


_CODES = {"red": 31, "green": 32, "yellow": 33, "cyan": 36, "bold": 1, "dim": 2}


def paint(text: str, style: str, *, colour: bool) -> str:
    """A text in a colour, when there is colour."""
    return f"\033[{_CODES[style]}m{text}\033[0m" if colour and text else text
