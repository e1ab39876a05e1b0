"""Rounds on one snapshot: fixes over several files are agreed on first, then every file is looked at by itself.

A fix over several files is one transaction: where a guard fails in one of them, it is taken back in all. If such fixes
changed anything, a further round looks at the new snapshot. Nothing is written here.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from torchmod.edits import Revision, clash
from torchmod.engine import Job, Plan, TransformError, collected
from torchmod.imports import preludes
from torchmod.model import Edit, Finding, Need, Outcome, Refused, Status, Unreadable
from torchmod.project import Project
from torchmod.registry import Transform
from torchmod.source import Source
from torchmod.subjects import ProjectFiles
from torchmod.suppressions import Suppressions

MAX_ROUNDS = 5
WHOLE = "."
"""The path under which a transform is named that failed on the project as a whole."""
Run = Callable[[Sequence[Job]], list[Outcome]]


@dataclass(frozen=True, slots=True)
class _Transaction:
    """An accepted fix over several files: its edits by path, and what it needs in the file of its finding."""

    edits: Mapping[str, tuple[Edit, ...]]
    home: str
    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True)
class _Agreed:
    """The findings of the project transforms of one round with the numbers of their transactions, if accepted."""

    sources: Mapping[str, Source]
    findings: tuple[Finding, ...]
    numbers: tuple[int | None, ...]
    accepted: Mapping[int, _Transaction]
    failures: tuple[str, ...]
    next_number: int

    @property
    def names(self) -> str:
        """The transforms of the accepted fixes."""
        pairs = zip(self.findings, self.numbers, strict=True)
        return ", ".join(sorted({finding.transform for finding, number in pairs if number is not None}))


def run_rounds(plan: Plan, jobs: Sequence[Job], run: Run) -> list[Outcome]:
    """The outcome of every job, in order, and of the project as a whole. ``run`` looks at single files."""
    if not any(one.on_project for one in plan.transforms):
        return run(jobs)
    total: dict[str, Outcome] = {}
    failures: dict[str, Outcome] = {}
    snapshot, now = {job.path: job for job in jobs}, list(jobs)
    first = agreed = _agree(plan, jobs, 0)
    for _ in range(MAX_ROUNDS):
        failures |= {why: Outcome(WHOLE, Status.FAILED, why) for why in agreed.failures}
        outcomes = _with_transactions(agreed, now, run)
        changed = [o for o in outcomes if o.new is not None]
        made = {path: _revision(outcome) for path, outcome in total.items() if outcome.new is not None}
        total |= {o.path: _merged(total[o.path], o, made) if total else o for o in outcomes}
        if not changed or not plan.apply:
            break
        for outcome in changed:
            snapshot[outcome.path] = replace(snapshot[outcome.path], data=outcome.new or b"")
        now = list(snapshot.values())
        agreed = _agree(plan, now, agreed.next_number)
    else:
        if agreed.accepted:
            why = f"fixes over several files were left out: they never come to an end ({agreed.names})"
            failures[why] = Outcome(WHOLE, Status.FAILED, why)
            total = {o.path: o for o in _with_transactions(replace(first, accepted={}), jobs, run)}
    return [*(total[job.path] for job in jobs), *failures.values()]


def raised(error: BaseException) -> str:
    """An exception in one line, with the place that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}: {error}"


def _agree(plan: Plan, jobs: Sequence[Job], first_number: int) -> _Agreed:
    """Run the project transforms on the snapshot, and choose the fixes that go together."""
    data = {os.path.abspath(job.path): job.data for job in jobs}
    project = Project(lambda path: data[path] if path in data else _read(path))
    sources = {source.path: source for job in jobs if job.is_python for source in _decoded(job)}
    silencers = {path: _silencer(source) for path, source in sources.items()}
    findings: list[Finding] = []
    failures: list[str] = []
    for one in plan.transforms:
        if not one.on_project:
            continue
        try:
            found = collected(one, ProjectFiles(one.name, list(sources.values()), project.around))
            loud = [f for f in found if f.path in sources and not _silenced(f, sources, silencers)]
            findings += [_built(plan, one, finding) for finding in loud]
        except TransformError as error:
            failures.append(str(error))
    placed = [replace(finding, place=sources[finding.path].place(finding.span)) for finding in findings]
    return _chosen(plan, placed, sources, first_number, failures)


def _silenced(finding: Finding, sources: Mapping[str, Source], silencers: Mapping[str, Suppressions]) -> bool:
    line = sources[finding.path].line_at(finding.span.start)
    return silencers[finding.path].silences(finding.transform, line)


def _built(plan: Plan, one: Transform, finding: Finding) -> Finding:
    """A finding with its fix, where somebody wants it; a refusal makes it a note."""
    target = plan.versions.target
    if finding.build is not None and target is not None and target < one.needs_version:
        wanted = ".".join(map(str, target)).removesuffix(".0")
        return finding.as_note(f"the new form needs torch {one.since}, the target is {wanted}")
    if finding.build is None or not (plan.apply or plan.build):
        return replace(finding, build=None)
    try:
        return replace(finding, fix=finding.build(), build=None)
    except Refused as refusal:
        return finding.as_note(str(refusal))
    except Exception as error:
        raise TransformError(f"transform {one.name} raised {raised(error)}") from error


def _chosen(
    plan: Plan,
    findings: Sequence[Finding],
    sources: Mapping[str, Source],
    first_number: int,
    failures: Sequence[str],
) -> _Agreed:
    taken: dict[str, list[Edit]] = {}
    numbers: list[int | None] = []
    accepted: dict[int, _Transaction] = {}
    for finding in findings:
        numbers.append(None)
        fix = finding.fix
        if not plan.apply or finding.applicability not in plan.levels or fix is None:
            continue
        by_path: dict[str, tuple[Edit, ...]] = {finding.path: ()}
        for edit in fix.edits:
            path = edit.path or finding.path
            by_path[path] = (*by_path.get(path, ()), replace(edit, path=None))
        one = _Transaction(by_path, finding.path, fix.needs)
        fits = all(path in sources and not clash(edits, taken.get(path, [])) for path, edits in by_path.items())
        if fits and _needs_fit([*accepted.values(), one], sources[finding.path]):
            number = first_number + len(accepted)
            numbers[-1] = number
            accepted[number] = one
            for path, edits in by_path.items():
                taken[path] = sorted([*taken.get(path, []), *edits])
    following = first_number + len(accepted)
    return _Agreed(sources, tuple(findings), tuple(numbers), accepted, tuple(failures), following)


def _needs_fit(transactions: Iterable[_Transaction], source: Source) -> bool:
    """Whether what the fixes need in a file has a place there; a fix whose needs have none is left."""
    try:
        _preludes(transactions, source)
    except (Refused, Unreadable):
        return False
    return True


def _preludes(transactions: Iterable[_Transaction], source: Source) -> tuple[Edit, ...]:
    needs = [need for one in transactions if one.home == source.path for need in one.needs]
    return preludes(source, source.parse(), needs) if needs else ()


def _with_transactions(agreed: _Agreed, jobs: Sequence[Job], run: Run) -> list[Outcome]:
    """Run the files with the agreed edits; a transaction that fails in one file is taken back in all of them."""
    good = dict(agreed.accepted)
    outcomes: dict[str, Outcome] = {}
    waiting: Sequence[Job] = jobs
    while waiting:
        seeded = [replace(job, seeds=_seeds(good, agreed.sources.get(job.path))) for job in waiting]
        outcomes |= {outcome.path: outcome for outcome in run(seeded)}
        broken = {n for o in outcomes.values() if o.status is not Status.OK for n in o.transactions} & good.keys()
        paths = {path for number in broken for path in good[number].edits}
        good = {number: one for number, one in good.items() if number not in broken}
        waiting = [job for job in jobs if job.path in paths and outcomes[job.path].status is Status.OK]
    by_path: dict[str, list[Finding]] = {}
    for finding, number in zip(agreed.findings, agreed.numbers, strict=True):
        by_path.setdefault(finding.path, []).append(replace(finding, fixed=number in good))
    return [_with_findings(outcomes[job.path], by_path.get(job.path, ())) for job in jobs]


def _seeds(good: Mapping[int, _Transaction], source: Source | None) -> tuple[tuple[int, tuple[Edit, ...]], ...]:
    """A file's part in the transactions. All edits come with the first one: their offsets are those of the snapshot."""
    if source is None:
        return ()
    mine = {number: one for number, one in good.items() if source.path in one.edits}
    edits = (*_preludes(mine.values(), source), *(e for one in mine.values() for e in one.edits[source.path]))
    return tuple((number, () if index else edits) for index, number in enumerate(mine))


def _with_findings(outcome: Outcome, findings: Iterable[Finding]) -> Outcome:
    everything = sorted([*outcome.findings, *findings], key=lambda f: (f.span, f.transform, f.message))
    return replace(outcome, findings=tuple(everything))


def _revision(outcome: Outcome) -> tuple[Revision, Source]:
    """What was made of a changed file, and the file as it was read."""
    source = Source.decode(outcome.path, outcome.old or b"")
    return Revision.of(len(source.text)).then(outcome.edits), source


def _merged(earlier: Outcome, later: Outcome, made: Mapping[str, tuple[Revision, Source]]) -> Outcome:
    """What came of a file up to a round, as one outcome against the file as it was read."""
    if later.status is not Status.OK and earlier.new is not None:
        # what the earlier rounds agreed on stays: other files may rely on it
        reason = f"it keeps the fixes made so far, but a further round failed: {later.reason}"
        return replace(earlier, status=Status.FAILED, reason=reason)
    findings = [*(f for f in earlier.findings if f.fixed), *(_moved(finding, made) for finding in later.findings)]
    merged = later
    if earlier.new is not None:
        revision = made[earlier.path][0].then(later.edits)
        merged = replace(later, old=earlier.old, new=later.new or earlier.new, edits=revision.edits())
    return replace(
        merged,
        findings=tuple(sorted(findings, key=lambda f: (f.span, f.transform, f.message))),
        transactions=tuple(dict.fromkeys((*earlier.transactions, *later.transactions))),
    )


def _moved(finding: Finding, made: Mapping[str, tuple[Revision, Source]]) -> Finding:
    """A finding of a later round, with the positions of the files as they were read."""
    if finding.path in made:
        revision, source = made[finding.path]
        span = revision.origin(finding.span)
        finding = replace(finding, span=span, place=source.place(span))
    if finding.fix is None:
        return finding
    edits = []
    for edit in finding.fix.edits:
        path = edit.path or finding.path
        origin = made[path][0].origin(edit.span) if path in made else edit.span
        edits.append(replace(edit, start=origin.start, end=origin.end))
    return replace(finding, fix=replace(finding.fix, edits=tuple(edits)))


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
