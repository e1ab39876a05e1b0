"""Findings for a person to read, one a line, and the closing summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchmod.basics import Applicability, Status
from torchmod.report.view import View, paint
from torchmod.runner import Run

if TYPE_CHECKING:
    from torchmod.model import Finding

_STYLES = {
    Applicability.SAFE: "green",
    Applicability.UNSAFE: "yellow",
    Applicability.DISPLAY: "red",
    Applicability.NOTE: "dim",
}
_NOTE_REASONS = 15


def findings(run: Run, view: View) -> str:
    """The findings that are left, with their evidence when asked for; notes only with ``-v``."""
    lines: list[str] = []
    for outcome in run.outcomes:
        for finding in outcome.findings:
            if not finding.fixed and (view.verbose or finding.applicability is not Applicability.NOTE):
                lines += _finding(finding, view)
    return "".join(f"{line}\n" for line in lines)


def _finding(finding: Finding, view: View) -> Iterator[str]:
    place = finding.place
    where = f"{finding.path}:{place.line}:{place.column}" if place else finding.path
    level = paint(f"[{finding.applicability}]", _STYLES[finding.applicability], colour=view.colour)
    yield f"{paint(where, 'bold', colour=view.colour)}: {finding.transform} {level} {finding.message}"
    if view.verbose:
        yield from (f"    because {step}" for step in finding.evidence)


def problems(run: Run, view: View) -> str:
    """The files that could not be looked at; with ``-v`` also those that were left out on purpose."""
    lines = []
    for outcome in run.outcomes:
        if outcome.status is Status.SKIPPED and view.verbose:
            lines.append(f"skipped {outcome.path}: {outcome.reason}\n")
        elif outcome.reason and outcome.status is not Status.SKIPPED:
            word = "failed" if outcome.status is Status.FAILED else "cannot look at"
            lines.append(f"{paint(word, 'red', colour=view.colour)} {outcome.path}: {outcome.reason}\n")
    return "".join(lines)


def summary(run: Run, view: View) -> str:
    """What was found and done, what is left, and how to get at it."""
    everything = [finding for outcome in run.outcomes for finding in outcome.findings]
    fixed = [finding for finding in everything if finding.fixed]
    left = Counter(finding.applicability for finding in everything if not finding.fixed)
    lines = []
    if view.verbose:
        lines += _notes(everything)
    if fixed:
        verb = "would be fixed" if view.command == "diff" else "fixed"
        lines.append(f"{_count(len(fixed), 'finding')} {verb} in {_count(len(run.changed), 'file')}")
    if left.total() or not run.count(Status.UNREADABLE, Status.FAILED):
        lines.append(_left(left, view))
    counts = [f"{_count(run.checked, 'file')} checked"]
    for status, word in ((Status.SKIPPED, "left out"), (Status.UNREADABLE, "unreadable"), (Status.FAILED, "failed")):
        number = run.count(status)
        if number:
            counts.append(f"{number} {word}{' (-v)' if status is Status.SKIPPED and not view.verbose else ''}")
    lines.append(", ".join(counts))
    return "".join(f"{line}\n" for line in lines)


def _left(left: Counter[Applicability], view: View) -> str:
    safe, unsafe = left[Applicability.SAFE], left[Applicability.UNSAFE]
    parts = []
    if safe:
        parts.append(f"{safe} fixable with `torchmod fix`")
    if unsafe:
        parts.append(f"{unsafe} {'more ' * bool(safe)}with `--unsafe`")
    if left[Applicability.DISPLAY]:
        parts.append(f"{left[Applicability.DISPLAY]} to do by hand")
    notes = left[Applicability.NOTE]
    if notes:
        parts.append(_count(notes, "note") + ("" if view.verbose else " (-v)"))
    if not parts:
        return "nothing to do" if view.command == "check" else "nothing left to do"
    return ", ".join(parts)


def _notes(everything: list[Finding]) -> list[str]:
    """How often each reason for leaving something alone was given."""
    reasons = Counter((f.transform, f.message) for f in everything if f.applicability is Applicability.NOTE)
    if not reasons:
        return []
    lines = ["", "left alone:"]
    lines += [f"{number:6}  {name}: {why}" for (name, why), number in reasons.most_common(_NOTE_REASONS)]
    rest = sum(reasons.values()) - sum(number for _, number in reasons.most_common(_NOTE_REASONS))
    return [*lines, *([f"{rest:6}  for other reasons"] if rest else []), ""]


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
