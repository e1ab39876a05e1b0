"""Findings for programs: one JSON object, or GitHub's workflow commands."""

from __future__ import annotations

import json
from typing import Any

from torchmod import __version__
from torchmod.model import Applicability, Finding, Status
from torchmod.report.view import View
from torchmod.runner import Run

FORMAT_VERSION = 1
_KINDS = {Status.SKIPPED: "skipped", Status.UNREADABLE: "skipped", Status.FAILED: "failed"}


def as_json(run: Run) -> str:
    """The whole run as one object; positions as `model` says, lines and columns 1-based."""
    problems = [
        {"path": outcome.path, "kind": _KINDS[outcome.status], "reason": outcome.reason}
        for outcome in run.outcomes
        if outcome.status in _KINDS
    ]
    whole = {
        "version": FORMAT_VERSION,
        "torchmod": __version__,
        "findings": [_finding(finding) for outcome in run.outcomes for finding in outcome.findings],
        "files": {
            "checked": run.checked,
            "changed": len(run.changed),
            "skipped": run.count(Status.SKIPPED, Status.UNREADABLE),
            "failed": run.count(Status.FAILED),
        },
        "problems": problems,
    }
    return json.dumps(whole, indent=1, ensure_ascii=True) + "\n"


def _finding(finding: Finding) -> dict[str, Any]:
    place = finding.place
    fix = None
    if finding.fix is not None and finding.applicability is not Applicability.NOTE:
        edits = [
            {"path": edit.path or finding.path, "start": edit.start, "end": edit.end, "text": edit.text}
            for edit in finding.fix.edits
        ]
        fix = {"edits": edits}
    return {
        "path": finding.path,
        "line": place.line if place else 1,
        "column": place.column if place else 1,
        "end_line": place.end_line if place else 1,
        "end_column": place.end_column if place else 1,
        "cell": None,
        "transform": finding.transform,
        "applicability": str(finding.applicability),
        "message": finding.message,
        "evidence": list(finding.evidence),
        "fix": fix,
        "fixed": finding.fixed,
    }


def as_github(run: Run, view: View) -> str:
    """Annotations for a pull request; notes only with ``-v``, problems as errors."""
    lines = []
    for outcome in run.outcomes:
        if outcome.status in (Status.UNREADABLE, Status.FAILED):
            lines.append(f"::error file={_property(outcome.path)},title=torchmod::{_text(outcome.reason)}")
        for finding in outcome.findings:
            is_note = finding.applicability is Applicability.NOTE
            if finding.fixed or finding.place is None or (is_note and not view.verbose):
                continue
            at = finding.place
            where = f"file={_property(finding.path)},line={at.line},endLine={at.end_line}"
            if at.line == at.end_line:  # GitHub takes columns only within one line
                where += f",col={at.column},endColumn={at.end_column}"
            level = "notice" if is_note else "warning"
            message = f"{finding.message} [{finding.applicability}]"
            lines.append(f"::{level} {where},title={_property(finding.transform)}::{_text(message)}")
    return "".join(f"{line}\n" for line in lines)


def _text(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _text(value).replace(":", "%3A").replace(",", "%2C")
