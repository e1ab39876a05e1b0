"""Levels, statuses and errors: what every run needs from its start on, and nothing that is slow to import."""

from __future__ import annotations

import enum

UNUSED_SUPPRESSION = "unused-suppression"


class Applicability(enum.StrEnum):
    """How far a finding may be acted upon."""

    SAFE = "safe"  # applied by default
    UNSAFE = "unsafe"  # applied with --unsafe
    DISPLAY = "display"  # to be done by hand; shown, never applied
    NOTE = "note"  # looks like the idiom, left alone, with the reason


class Status(enum.StrEnum):
    """What became of a file."""

    OK = "ok"
    SKIPPED = "skipped"  # left out on purpose
    UNREADABLE = "unreadable"  # cannot be decoded or parsed: nothing was looked at
    FAILED = "failed"  # something went wrong in torchmod: left as it was


class TorchmodError(Exception):
    """A mistake in what the user gave us: shown without a traceback, exit status 2."""
