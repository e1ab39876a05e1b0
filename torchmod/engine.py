"""One file: text -> findings -> fixes, again until nothing changes -> Outcome.

The one place that catches a transform's exception. Writes nothing.
"""

from __future__ import annotations

import ast
import os
import traceback
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from torchmod import guards, imports
from torchmod.calls import Call, Callee, callee
from torchmod.edits import Revision, apply, clash, take
from torchmod.model import (
    Applicability,
    Edit,
    Finding,
    Fix,
    Need,
    Outcome,
    Refused,
    Span,
    Status,
    Unreadable,
    Wrapper,
)
from torchmod.names import Names, Neighbours
from torchmod.project import Project
from torchmod.registry import Transform
from torchmod.source import Source
from torchmod.subjects import UNKNOWN_VERSIONS, Document, Module, Subject, Versions
from torchmod.suppressions import Suppressions
from torchmod.trees import GuardError

_SPARE_PASSES = 4


@dataclass(frozen=True, slots=True)
class Job:
    """One file to look at. ``seeds`` are the edits of fixes over several files, by their number, made first."""

    path: str
    data: bytes
    is_python: bool = True
    seeds: tuple[tuple[int, tuple[Edit, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with every file of a run."""

    transforms: tuple[Transform, ...]
    known: frozenset[str]
    levels: frozenset[Applicability]
    versions: Versions = UNKNOWN_VERSIONS
    apply: bool = False
    """Make the fixes; else only find."""
    build: bool = False
    """Build the edits of every fix, also of those that are not applied."""


class TransformError(Exception):
    """A transform raised: its name, and where."""


@dataclass(slots=True)
class _Pass:
    """A text as it is in one pass, and everything known of it."""

    source: Source
    tree: ast.Module | None
    names: Names | None
    suppressions: Suppressions


class Engine:
    """Runs the transforms of a plan over files, one at a time."""

    def __init__(self, plan: Plan, project: Project | None = None) -> None:
        self._plan = plan
        self._project = project or Project()

    def run(self, job: Job) -> Outcome:
        """Everything that comes of one file; never raises for what is in the file or in a transform."""
        taken = tuple(number for number, _ in job.seeds)
        try:
            source = Source.decode(job.path, job.data)
            return _File(self._plan, self._project.around(job.path), source, job).run()
        except Unreadable as error:
            return Outcome(job.path, Status.UNREADABLE, str(error), transactions=taken)
        except GuardError as error:
            return Outcome(job.path, Status.FAILED, f"left as it was: {error}", transactions=taken)
        except TransformError as error:
            return Outcome(job.path, Status.FAILED, str(error), transactions=taken)


class _File:
    """The passes over one file."""

    def __init__(self, plan: Plan, neighbours: Neighbours, source: Source, job: Job) -> None:
        self._plan = plan
        self._neighbours = neighbours
        self._source = source
        self._job = job
        self._revision = Revision.of(len(source.text))
        self._fixed: list[tuple[Finding, tuple[Span, ...]]] = []

    def run(self) -> Outcome:
        now = self._look(self._source, None)
        for _, edits in self._job.seeds:
            now = self._changed(now, edits)
        found = self._find(now)
        if self._plan.apply:
            now, found = self._apply_all(now, found)
        found = [self._built(f) if self._plan.build and f.build else f for f in found]
        findings = [self._final(f) for f in [*self._remaining(found), *self._done()]]
        findings += [self._placed(f) for f in self._unused(now)]
        new = now.source.encode(now.source.text)
        changed = new != self._job.data
        return Outcome(
            self._source.path,
            findings=tuple(sorted(findings, key=lambda f: (f.span, f.transform, f.message))),
            old=self._job.data if changed else None,
            new=new if changed else None,
            edits=self._revision.edits() if changed else (),
            transactions=tuple(number for number, _ in self._job.seeds),
        )

    def _look(self, source: Source, earlier: _Pass | None) -> _Pass:
        """Parse a text and find its names; raises Unreadable."""
        if not self._job.is_python:
            return _Pass(source, None, None, Suppressions(source, None))
        tree = source.parse()
        now = _Pass(source, tree, Names(tree, self._neighbours), Suppressions(source, tree))
        if earlier is not None:
            now.suppressions.carry_over(earlier.suppressions)
        return now

    # finding

    def _find(self, now: _Pass) -> list[Finding]:
        """What the transforms have to say, less what is silenced, in the order of the text."""
        found: list[Finding] = []
        if now.tree is not None and now.names is not None:
            module = Module("", now.source, now.tree, now.names, self._plan.versions)
            found += self._from_calls(module)
            for one in self._plan.transforms:
                if one.on_module:
                    found += collected(one, module.seen_by(one.name))
        else:
            for one in self._plan.transforms:
                if any(fnmatchcase(os.path.basename(now.source.path), pattern) for pattern in one.documents):
                    found += collected(one, Document(one.name, now.source))
        found = [self._for_target(finding) for finding in found]
        loud = [f for f in found if not now.suppressions.silences(f.transform, now.source.line_at(f.span.start))]
        return sorted(loud, key=lambda f: (f.span, f.transform))

    def _from_calls(self, module: Module) -> Iterator[Finding]:
        wanted = [one for one in self._plan.transforms if one.calls or one.keywords]
        for node in module.names.calls if wanted else ():
            called = callee(module.names, node)
            for one in wanted:
                call = _call_for(one, module, node, called)
                if call is not None:
                    yield from collected(one, call)

    def _for_target(self, finding: Finding) -> Finding:
        """A fix whose code needs a newer torch than the target is only a note."""
        target = self._plan.versions.target
        one = next((t for t in self._plan.transforms if t.name == finding.transform), None)
        if one is None or finding.build is None or target is None or target >= one.needs_version:
            return finding
        wanted = ".".join(map(str, target)).removesuffix(".0")
        message = f"the new form needs torch {one.since}, the target is {wanted}"
        return finding.as_note(message)

    def _unused(self, now: _Pass) -> list[Finding]:
        active = {one.name for one in self._plan.transforms if not one.on_project}
        found = now.suppressions.findings(self._source.path, active, self._plan.known)
        return [replace(f, span=self._revision.origin(f.span)) for f in found]

    # fixing

    def _apply_all(self, now: _Pass, found: list[Finding]) -> tuple[_Pass, list[Finding]]:
        """Make fixes until none is left; fixes that exclude each other take turns."""
        for _ in range(_nesting(found) + _SPARE_PASSES):
            accepted, found = self._accept(now, found)
            if not accepted:
                return now, found
            edits = self._all_edits(now, accepted)
            for finding in accepted:
                fix = finding.fix or Fix(())
                spans = tuple(self._revision.origin(e.span) for e in fix.edits)
                self._fixed.append((replace(finding, span=self._revision.origin(finding.span)), spans))
            wrappers = [wrapper for finding in accepted if finding.fix for wrapper in finding.fix.wrappers]
            now = self._changed(now, edits, wrappers)
            found = self._find(now)
        names = ", ".join(sorted({f.transform for f in found if f.applicability in self._plan.levels}))
        raise GuardError(f"the fixes never come to an end ({names})")

    def _accept(self, now: _Pass, found: list[Finding]) -> tuple[list[Finding], list[Finding]]:
        """The findings whose fixes can be made together, built; and all findings, with refusals turned to notes."""
        accepted: list[Finding] = []
        taken: list[Edit] = []
        told: list[Finding] = []
        for finding in found:
            if finding.applicability in self._plan.levels and finding.build is not None:
                finding = self._built(finding)  # noqa: PLW2901
                edits = list(finding.fix.edits) if finding.fix else []
                if edits and not clash(edits, taken) and self._needs_fit(now, finding, accepted):
                    accepted.append(finding)
                    take(edits, taken)
            told.append(finding)
        return accepted, told

    def _needs_fit(self, now: _Pass, finding: Finding, accepted: Sequence[Finding]) -> bool:
        """Whether a fix's preludes have a place; one that has none waits, and ends as a finding that is left."""
        if now.tree is None or finding.fix is None or not finding.fix.needs:
            return True
        try:
            imports.preludes(now.source, now.tree, _needs([*accepted, finding]))
        except Refused:
            return False
        return True

    def _all_edits(self, now: _Pass, accepted: Sequence[Finding]) -> list[Edit]:
        edits = [edit for finding in accepted for edit in (finding.fix.edits if finding.fix else ())]
        needs = _needs(accepted)
        if needs and now.tree is not None:
            edits = _joined([*imports.preludes(now.source, now.tree, needs), *edits])
        return edits

    def _changed(self, now: _Pass, edits: Sequence[Edit], wrappers: Sequence[Wrapper] = ()) -> _Pass:
        """The next pass's text; raises GuardError when it must not be written."""
        try:
            text = apply(now.source.text, edits)
        except ValueError as error:
            raise GuardError(str(error)) from None
        try:
            after = self._look(now.source.revised(text), now)
        except Unreadable as error:
            raise GuardError(f"the new text is no longer Python: {error}") from None
        if now.names is None or after.names is None:
            guards.check_text(now.source, after.source, edits)
        else:
            guards.check_python(now.source, now.names, after.source, after.names, edits, wrappers=wrappers)
        self._revision = self._revision.then(edits)
        return after

    def _built(self, finding: Finding) -> Finding:
        """A finding with its fix made; a refusal makes it a note."""
        if finding.fix is not None or finding.build is None:
            return finding
        try:
            return replace(finding, fix=finding.build())
        except Refused as refusal:
            return finding.as_note(str(refusal))
        except Exception as error:
            raise TransformError(_blame(finding.transform, error)) from error

    # telling

    def _remaining(self, found: Iterable[Finding]) -> Iterator[Finding]:
        """What was left, as findings of the file as it was read."""
        for finding in found:
            fix = finding.fix
            if fix is not None:
                fix = replace(fix, edits=tuple(self._moved(edit) for edit in fix.edits))
            yield replace(finding, span=self._revision.origin(finding.span), fix=fix)

    def _moved(self, edit: Edit) -> Edit:
        origin = self._revision.origin(edit.span)
        return replace(edit, start=origin.start, end=origin.end)

    def _done(self) -> Iterator[Finding]:
        """What was fixed; the edits are those that the whole run makes at the fix's places."""
        final = self._revision.edits()
        ends = [edit.end for edit in final]
        for finding, spans in self._fixed:
            mine: dict[Edit, None] = {}
            for span in spans:
                at = bisect_left(ends, span.start)
                while at < len(final) and final[at].start <= span.end:
                    mine[final[at]] = None
                    at += 1
            yield replace(finding, fixed=True, fix=Fix(tuple(mine)))

    def _final(self, finding: Finding) -> Finding:
        return self._placed(replace(finding, build=None))

    def _placed(self, finding: Finding) -> Finding:
        return replace(finding, path=self._source.path, place=self._source.place(finding.span))


def _call_for(one: Transform, module: Module, node: ast.Call, called: Callee) -> Call | None:
    """The call as a transform sees it, or None when it did not ask for such a call."""
    starred = any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords)
    if starred and not one.unpacked:
        return None
    resolved = called.resolved
    known = {name: one.calls[name] for name in sorted(resolved.names) if name in one.calls}
    if known:
        name, signature = next(iter(known.items()))
        others = sorted(resolved.names - known.keys())
        doubt = resolved.doubt
        if others or len(set(known.values())) > 1:
            doubt = doubt or f"it may be {' or '.join(sorted(resolved.names))}"
        return Call(one.name, module, node, called, name=name, signature=signature, doubt=doubt)
    if any(keyword.arg in one.keywords for keyword in node.keywords):
        return Call(one.name, module, node, called, doubt=resolved.doubt)
    return None


def collected(one: Transform, subject: Subject) -> list[Finding]:
    """All findings of a transform about a subject; a refusal becomes a note."""
    found: list[Finding] = []
    try:
        for finding in one.function(subject):
            if not isinstance(finding, Finding):
                raise TypeError(f"it gives {type(finding).__name__}, which is no finding")
            found.append(finding)
    except Refused as refusal:
        found.append(subject.report(str(refusal)))
    except Exception as error:  # whatever a transform may raise: this file is left, the run goes on
        raise TransformError(_blame(one.name, error)) from error
    return found


def _blame(name: str, error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
    return f"transform {name} raised {type(error).__name__} at {where}: {error}"


def _needs(findings: Iterable[Finding]) -> list[Need]:
    return [need for finding in findings if finding.fix is not None for need in finding.fix.needs]


def _joined(edits: Sequence[Edit]) -> list[Edit]:
    """The edits with insertions at one point made one, in the order given."""
    by_point: dict[tuple[int, int], Edit] = {}
    for edit in edits:
        known = by_point.get((edit.start, edit.end))
        by_point[edit.start, edit.end] = replace(edit, text=known.text + edit.text) if known else edit
    return list(by_point.values())


def _nesting(found: Sequence[Finding]) -> int:
    """How deep findings stand inside each other."""
    deepest, open_ends = 0, list[int]()
    for finding in sorted(found, key=lambda f: (f.span.start, -f.span.end)):
        while open_ends and open_ends[-1] <= finding.span.start:
            open_ends.pop()
        open_ends.append(finding.span.end)
        deepest = max(deepest, len(open_ends))
    return deepest
