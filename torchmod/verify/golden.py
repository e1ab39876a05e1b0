"""Runs golden cases: every pair in every mode, and every wrong rewrite until it is told apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from torchmod.verify.cases import DEVICE, GRADIENTS, MODES, NO_ACCELERATOR, Case
from torchmod.verify.compare import ELSEWHERE, Kind, Verdict, judge
from torchmod.verify.confine import Limits
from torchmod.verify.evidence import evidence
from torchmod.verify.trace import Device, Job, Status, Trace
from torchmod.verify.zygote import run_jobs

BEFORE, AFTER = "before.py", "after.py"
_WORST_FIRST = (Kind.DIFFERENT, Kind.STALE, Kind.INCONCLUSIVE, Kind.EQUIVALENT)
Key = tuple[str, str]
"""A file of a case, and the mode it runs in."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """Whether a wrong rewrite was told apart, and by what."""

    name: str
    caught: bool
    how: str
    mode: str
    by: str = ""
    """The aspect that told."""


@dataclass(slots=True)
class Result:
    """What came out for one case."""

    case: Case
    device: str = ""
    """Where it really ran; nothing when it did not run."""
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """By mode."""
    left_out: dict[str, str] = field(default_factory=dict)
    """The modes that make no sense for this case, with the reason."""
    wrong: list[Wrong] = field(default_factory=list)

    @property
    def kind(self) -> Kind | None:
        """The worst of all modes; None when it did not run."""
        found = {verdict.kind for verdict in self.verdicts.values()}
        return next((kind for kind in _WORST_FIRST if kind in found), None)

    @property
    def passed(self) -> bool:
        """Whether nothing is left to be said."""
        if self.kind is None:
            return bool(self.case.cannot_run) and not self.case.problem
        return self.kind is Kind.EQUIVALENT and all(one.caught for one in self.wrong)

    @property
    def not_compared(self) -> list[str]:
        """The paths of what could not be looked at, in any mode."""
        return list(dict.fromkeys(path for verdict in self.verdicts.values() for path in verdict.not_compared))


def run_cases(
    cases: Sequence[Case], device: Device = Device.AUTO, limits: Limits | None = None, *, workers: int | None = None
) -> list[Result]:
    """The results of all cases, in their order."""
    benches = [_Bench(case, device) for case in cases]
    run = _Runner(limits, workers)
    run.batch((bench, key) for bench in benches for key in bench.first())
    for bench in benches:
        bench.judge_pair()
    for mode in MODES:
        run.batch((bench, (name, mode)) for bench in benches for name in bench.open_in(mode))
        for bench in benches:
            bench.judge_wrong(mode)
    return [bench.finished() for bench in benches]


class _Runner:
    """Runs what has not been run yet, all at once."""

    def __init__(self, limits: Limits | None, workers: int | None) -> None:
        self.limits, self.workers = limits, workers

    def batch(self, wanted: Iterable[tuple[_Bench, Key]]) -> None:
        todo = [(bench, key) for bench, key in wanted if key not in bench.traces]
        traces = run_jobs([bench.job(*key) for bench, key in todo], self.limits, workers=self.workers)
        for (bench, key), trace in zip(todo, traces, strict=True):
            bench.traces[key] = trace


class _Bench:
    """One case with its traces so far."""

    def __init__(self, case: Case, device: Device) -> None:
        self.case, self.device = case, device
        self.traces: dict[Key, Trace] = {}
        self.result = Result(case)
        self.open: list[str] = []
        """The wrong rewrites that no mode has told apart."""
        self.doubts: dict[str, str] = {}
        """Why not, where there is something to say."""

    @property
    def runs(self) -> bool:
        return not self.case.problem and not self.case.cannot_run

    def first(self) -> list[Key]:
        """What is run in any case."""
        if not self.runs:
            return []
        after = [(AFTER, mode) for mode in MODES if mode != NO_ACCELERATOR or self.device is not Device.CPU]
        return [(BEFORE, DEVICE), (BEFORE, GRADIENTS), *after, *((name, DEVICE) for name in self.case.wrong)]

    def job(self, name: str, mode: str) -> Job:
        case = self.case
        source = {BEFORE: case.before, AFTER: case.after, **case.wrong}[name]
        return Job(
            source,
            setup=case.setup,
            watch=case.watch,
            device=Device.CPU if mode == NO_ACCELERATOR else self.device,
            devices=case.devices,
            legacy=case.legacy if name == BEFORE else None,
            inputs_require_grad=mode == GRADIENTS,
        )

    def judge_pair(self) -> None:
        """The verdicts on before and after, in all modes that make sense."""
        if not self.runs:
            return
        result, before, after = self.result, self.traces[BEFORE, DEVICE], self.traces[AFTER, DEVICE]
        result.device = before.device or after.device
        result.verdicts[DEVICE] = self._judge(AFTER, DEVICE)
        reason = self._no_gradients()
        if reason:
            result.left_out[GRADIENTS] = reason
        else:
            result.verdicts[GRADIENTS] = self._judge(AFTER, GRADIENTS)
        if self.device is Device.CPU:
            result.left_out[NO_ACCELERATOR] = "all runs are without one"
        elif after.status is Status.RAN and after.exception is None:
            result.verdicts[NO_ACCELERATOR] = self._judge_without_accelerator()
        else:
            result.left_out[NO_ACCELERATOR] = "it does not run on the device either"
        if result.verdicts[DEVICE].kind is not Kind.INCONCLUSIVE:
            self.open = list(self.case.wrong)

    def _judge(self, name: str, mode: str) -> Verdict:
        """A program against the one before it, in the same mode."""
        before, after = self.traces[BEFORE, mode], self.traces[name, mode]
        wants = list(self.case.wants.get(mode, ()))
        if mode == GRADIENTS:
            wants += [replace(want, required=False) for want in self.case.wants.get(DEVICE, ())]
        if self.device is Device.CPU:  # there is no other device to be on
            wants = [replace(want, required=want.required and want.aspect != "device") for want in wants]
        return judge(before, after, wants, watch=self.case.watch)

    def _no_gradients(self) -> str:
        """Why it makes no sense to let the inputs require grad, if so."""
        plain, other = self.traces[BEFORE, DEVICE], self.traces[BEFORE, GRADIENTS]
        if not plain.inputs:
            return "setup.py makes no floating tensor"
        if other.exception is not None and plain.exception is None:
            return f"with them {BEFORE} raises {other.exception}"
        return ""

    def _judge_without_accelerator(self) -> Verdict:
        """What the program after computes without a GPU, against what it computes with one."""
        wants = self.case.wants.get(NO_ACCELERATOR, ())
        here, there = self.traces[AFTER, DEVICE], self.traces[AFTER, NO_ACCELERATOR]
        # a real GPU draws other random numbers and sums in another order
        numbers = {"value", "text"} if here.device.startswith("cuda") else set()
        return judge(here, there, wants, ignored=ELSEWHERE | numbers, watch=self.case.watch)

    def open_in(self, mode: str) -> list[str]:
        """The wrong rewrites that are still to be told apart, if this mode can."""
        return self.open if mode in self.result.verdicts else []

    def judge_wrong(self, mode: str) -> None:
        for name in list(self.open_in(mode)):
            wrong, right = self.traces[name, mode], self.traces[AFTER if mode == NO_ACCELERATOR else BEFORE, mode]
            verdict = judge(right, wrong) if mode == NO_ACCELERATOR else self._judge(name, mode)
            found = evidence(verdict, right, wrong, may_raise=name in self.case.wrong_raises)
            if found.counts:
                self.open.remove(name)
                self.result.wrong.append(Wrong(name, True, found.how, mode, found.by))
            elif verdict.kind is not Kind.EQUIVALENT:
                self.doubts.setdefault(name, found.how)

    def finished(self) -> Result:
        judged = {one.name for one in self.result.wrong}
        how = "it does the same" if self.open else "not judged, because the pair itself is inconclusive"
        left = [name for name in self.case.wrong if name not in judged] if self.runs else []
        self.result.wrong += [Wrong(name, False, self.doubts.get(name, how), "") for name in left]
        self.result.wrong.sort(key=lambda one: one.name)
        return self.result
