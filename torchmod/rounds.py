"""Rounds on one snapshot: fixes over several files are agreed on first, then every file is looked at by itself.

A fix over several files is one transaction: where a guard fails in one of them, it is taken back in all. If such fixes
changed anything, a further round looks at the new snapshot. Nothing is written here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from torchmod.edits import Revision, clash
from torchmod.engine import Job, Plan, collected
from torchmod.model import Edit, Finding, Fix, Outcome, Refused, Status, Unreadable
from torchmod.project import Project
from torchmod.source import Source
from torchmod.subjects import ProjectFiles
from torchmod.suppressions import Suppressions

MAX_ROUNDS = 5
Run = Callable[[Sequence[Job]], list[Outcome]]


@dataclass(frozen=True, slots=True)
class _Agreed:
    """The findings of the project transforms of one round, and the edits of the accepted ones by number and path."""

    findings: tuple[Finding, ...]
    numbers: tuple[int | None, ...]
    edits: Mapping[int, Mapping[str, tuple[Edit, ...]]]


def run_rounds(plan: Plan, jobs: Sequence[Job], run: Run) -> list[Outcome]:
    """The outcome of every job, in order. ``run`` looks at single files."""
    if not any(one.on_project for one in plan.transforms):
        return run(jobs)
    total: dict[str, Outcome] = {}
    snapshot, now = {job.path: job for job in jobs}, list(jobs)
    first_number = 0
    for _ in range(MAX_ROUNDS):
        agreed = _agree(plan, list(snapshot.values()), first_number)
        first_number += len(agreed.edits)
        outcomes = _with_transactions(agreed, now, run)
        changed = [o for o in outcomes if o.new is not None]
        for outcome in outcomes:
            earlier = total.get(outcome.path)
            total[outcome.path] = _merged(earlier, outcome) if earlier is not None else outcome
        if not changed or not plan.apply:
            break
        for outcome in changed:
            snapshot[outcome.path] = replace(snapshot[outcome.path], data=outcome.new or b"")
        now = list(snapshot.values())
    return [total[job.path] for job in jobs]


def _agree(plan: Plan, jobs: Sequence[Job], first_number: int) -> _Agreed:
    """Run the project transforms on the snapshot, and choose the fixes that go together."""
    data = {os.path.abspath(job.path): job.data for job in jobs}
    project = Project(lambda path: data[path] if path in data else _read(path))
    sources = {source.path: source for job in jobs if job.is_python for source in _decoded(job)}
    silencers = {path: _silencer(source) for path, source in sources.items()}
    findings: list[Finding] = []
    for one in plan.transforms:
        if one.on_project:
            files = ProjectFiles(one.name, list(sources.values()), project.around)
            findings += (f for f in collected(one, files) if f.path in sources)
    loud = []
    for finding in findings:
        line = sources[finding.path].line_at(finding.span.start)
        if not silencers[finding.path].silences(finding.transform, line):
            loud.append(replace(finding, place=sources[finding.path].place(finding.span)))
    return _chosen(plan, loud, sources, first_number)


def _chosen(plan: Plan, findings: Sequence[Finding], sources: Mapping[str, Source], first_number: int) -> _Agreed:
    taken: dict[str, list[Edit]] = {}
    told: list[Finding] = []
    numbers: list[int | None] = []
    accepted: dict[int, Mapping[str, tuple[Edit, ...]]] = {}
    for finding in findings:
        built = _built(finding) if plan.apply or plan.build else finding
        told.append(replace(built, build=None))
        numbers.append(None)
        if not plan.apply or built.applicability not in plan.levels or built.fix is None:
            continue
        by_path: dict[str, tuple[Edit, ...]] = {}
        for edit in built.fix.edits:
            path = edit.path or finding.path
            by_path[path] = (*by_path.get(path, ()), replace(edit, path=None))
        fits = all(path in sources and not clash(edits, taken.get(path, [])) for path, edits in by_path.items())
        if fits:
            numbers[-1] = first_number + len(accepted)
            accepted[first_number + len(accepted)] = by_path
            for path, edits in by_path.items():
                taken[path] = sorted([*taken.get(path, []), *edits])
    return _Agreed(tuple(told), tuple(numbers), accepted)


def _built(finding: Finding) -> Finding:
    if finding.build is None:
        return finding
    try:
        return replace(finding, fix=finding.build())
    except Refused as refusal:
        return finding.as_note(str(refusal))


def _with_transactions(agreed: _Agreed, jobs: Sequence[Job], run: Run) -> list[Outcome]:
    """Run the files with the agreed edits; a transaction that fails in one file is taken back in all of them."""
    good = dict(agreed.edits)
    outcomes: dict[str, Outcome] = {}
    waiting: Sequence[Job] = jobs
    while waiting:
        seeded = [replace(job, seeds=_seeds(good, job.path)) for job in waiting]
        outcomes |= {outcome.path: outcome for outcome in run(seeded)}
        broken = {n for o in outcomes.values() if o.status is not Status.OK for n in o.transactions} & good.keys()
        paths = {path for number in broken for path in good[number]}
        good = {number: edits for number, edits in good.items() if number not in broken}
        waiting = [job for job in jobs if job.path in paths and outcomes[job.path].status is Status.OK]
    by_path: dict[str, list[Finding]] = {}
    for finding, number in zip(agreed.findings, agreed.numbers, strict=True):
        by_path.setdefault(finding.path, []).append(replace(finding, fixed=number in good))
    return [_with_findings(outcomes[job.path], by_path.get(job.path, ())) for job in jobs]


def _seeds(good: Mapping[int, Mapping[str, tuple[Edit, ...]]], path: str) -> tuple[tuple[int, tuple[Edit, ...]], ...]:
    return tuple((number, by_path[path]) for number, by_path in good.items() if path in by_path)


def _with_findings(outcome: Outcome, findings: Iterable[Finding]) -> Outcome:
    everything = sorted([*outcome.findings, *findings], key=lambda f: (f.span, f.transform, f.message))
    return replace(outcome, findings=tuple(everything))


def _merged(earlier: Outcome, later: Outcome) -> Outcome:
    """Two rounds over one file as one outcome against the file as it was read."""
    if later.status is not Status.OK:  # what the earlier rounds agreed on, other files may rely on
        return replace(earlier, reason=f"a further round was left out: {later.reason}")
    if earlier.new is None or earlier.old is None:
        return replace(later, findings=(*(f for f in earlier.findings if f.fixed), *later.findings))
    source = Source.decode(earlier.path, earlier.old)
    revision = Revision.of(len(source.text)).then(earlier.edits)
    moved = [_moved(finding, revision, source) for finding in later.findings]
    findings = [*(f for f in earlier.findings if f.fixed), *moved]
    revision = revision.then(later.edits)
    new = source.encode(revision.render(source.text))
    return Outcome(
        earlier.path,
        findings=tuple(sorted(findings, key=lambda f: (f.span, f.transform, f.message))),
        old=earlier.old,
        new=new,
        edits=revision.edits(),
        transactions=tuple(dict.fromkeys((*earlier.transactions, *later.transactions))),
    )


def _moved(finding: Finding, revision: Revision, source: Source) -> Finding:
    span = revision.origin(finding.span)
    fix = finding.fix
    if fix is not None:
        edits = []
        for edit in fix.edits:
            origin = revision.origin(edit.span)
            edits.append(replace(edit, start=origin.start, end=origin.end))
        fix = Fix(tuple(edits))
    return replace(finding, span=span, place=source.place(span), fix=fix)


def _decoded(job: Job) -> list[Source]:
    try:
        return [Source.decode(job.path, job.data)]
    except Unreadable:
        return []  # the pass over single files names it


def _silencer(source: Source) -> Suppressions:
    try:
        return Suppressions(source, source.parse())
    except Unreadable:
        return Suppressions(source, None)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
