"""Compares two traces, and judges the differences against those that were intended.

Paths in angle brackets (``<output>``, ``<files>.best.pt.epoch``) are observations of the whole run.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from torchmod.verify.differences import UNSEEN, Difference, children, entries, short, unequal
from torchmod.verify.trace import Output, Status, Trace


@dataclass(frozen=True, slots=True)
class Want:
    """An intended difference. ``*`` and ``?`` stand for any text and any character."""

    path: str
    aspect: str
    before: str = "*"
    after: str = "*"
    required: bool = True
    """Whether it has to occur."""

    def covers(self, one: Difference) -> bool:
        """Whether a difference is this one."""
        patterns = (self.path, self.aspect, self.before, self.after)
        texts = (one.path, one.aspect, one.before, one.after)
        return all(_matches(pattern, text) for pattern, text in zip(patterns, texts, strict=True))

    def __str__(self) -> str:
        return f"{self.path}: {self.aspect} from {self.before} to {self.after}"


def _matches(pattern: str, text: str) -> bool:
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, text, re.DOTALL) is not None


class Kind(enum.StrEnum):
    """What a comparison says."""

    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    STALE = "stale"  # an intended difference does not occur
    INCONCLUSIVE = "inconclusive"  # the program before does not run, or a watched value could not be looked at


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judgement; ``reason`` is one line."""

    kind: Kind
    reason: str = ""
    differences: tuple[Difference, ...] = ()
    """Those that were not intended."""
    not_compared: tuple[str, ...] = ()
    """The paths of what nobody looked at."""


ELSEWHERE = frozenset({"device", "held", "state", "new"})
"""Aspects that may be others on another device."""


def judge(
    before: Trace,
    after: Trace,
    wants: Sequence[Want] = (),
    *,
    ignored: Collection[str] = frozenset(),
    watch: Collection[str] = (),
) -> Verdict:
    """Whether the program after does what the program before did, apart from what is intended.

    Differences in an ignored aspect are not looked at. A name in ``watch`` has to be comparable.
    """
    if before.status is not Status.RAN:
        return Verdict(Kind.INCONCLUSIVE, before.reason)
    if before.exception is not None and not any(want.aspect == "exception" for want in wants):
        return Verdict(Kind.INCONCLUSIVE, f"it raises {before.exception}")
    if after.status is not Status.RAN:
        return Verdict(Kind.DIFFERENT, after.reason)
    try:
        every, unseen = survey(before, after)
    except Exception as error:  # a program may have written a trace of its own
        return Verdict(Kind.INCONCLUSIVE, f"the two traces cannot be compared: {type(error).__name__}")
    found = [one for one in every if one.aspect not in ignored]
    paths = tuple(one.path for one in unseen)
    unwanted = tuple(one for one in found if not any(want.covers(one) for want in wants))
    if unwanted:
        return Verdict(Kind.DIFFERENT, str(unwanted[0]), unwanted, paths)
    missing = [want for want in wants if want.required and not any(want.covers(one) for one in found)]
    if missing:
        return Verdict(Kind.STALE, f"an intended difference does not occur: {missing[0]}", (), paths)
    needed = [one for one in unseen if any(one.path == name or one.path.startswith(f"{name}.") for name in watch)]
    if needed:
        reason = f"it is watched, but was not compared: {needed[0].path} ({needed[0].before})"
        return Verdict(Kind.INCONCLUSIVE, reason, (), paths)
    return Verdict(Kind.EQUIVALENT, not_compared=paths)


def compare(before: Trace, after: Trace) -> list[Difference]:
    """Everything in which two runs differ; both have to have run."""
    return survey(before, after)[0]


def survey(before: Trace, after: Trace) -> tuple[list[Difference], list[Difference]]:
    """The differences, and what could not be compared."""
    found = [*_results(before, after), *_circumstances(before, after)]
    return [one for one in found if one.aspect != UNSEEN], [one for one in found if one.aspect == UNSEEN]


def _results(before: Trace, after: Trace) -> Iterator[Difference]:
    """In what the results differ."""
    raised = [f"{one.exception.type}: {one.exception.message}" if one.exception else "none" for one in (before, after)]
    yield from unequal("<run>", "exception", *raised)
    yield from _outputs(before.output, after.output)
    yield from children("", before.values, after.values)
    yield from children("<gradients>", before.gradients, after.gradients)
    yield from children("<files>", before.files, after.files)


def _circumstances(before: Trace, after: Trace) -> Iterator[Difference]:
    """In what else the runs differ. Warnings count where they are new, and both sides ran on the same torch."""
    yield from unequal("<graph>", "held", before.held_nodes, after.held_nodes)
    yield from entries("<random>", "state", before.random, after.random)
    yield from entries("<h5py>", "opens", before.opened, after.opened)
    if not before.emulated:
        for text in sorted(set(after.warnings) - set(before.warnings)):
            yield Difference("<warnings>", "new", "none", short(text))


def _outputs(before: Output, after: Output) -> Iterator[Difference]:
    """The first line that differs."""
    if before == after:
        return
    one, other = before.text.splitlines(), after.text.splitlines()
    for index in range(max(len(one), len(other))):
        lines = [side[index] if index < len(side) else "(no line)" for side in (one, other)]
        if lines[0] != lines[1]:
            yield Difference("<output>", "text", *map(short, lines))
            return
    yield Difference("<output>", "length", str(before.length), str(after.length))
