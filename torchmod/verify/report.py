"""Tells what came out: a table by transform with what is wrong below it, or one JSON object."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from torchmod.verify import confine
from torchmod.verify.cases import GRADIENTS, MODES
from torchmod.verify.compare import Kind, Verdict
from torchmod.verify.golden import Result, Wrong
from torchmod.verify.trace import printable

if TYPE_CHECKING:
    from torchmod.verify.battery import BatteryResult

FORMAT_VERSION = 1
_NAMES = {"simulated": "a simulated CUDA device", "cpu": "the CPU"}
_MOST_DIFFERENCES = 8
ONLY_A_GPU = "not shown without a real GPU: its kernels' numerics and limits, asynchronous errors, out of memory, NCCL"


def as_text(results: Sequence[Result], *, verbose: bool = False) -> str:
    """The whole report."""
    lines = [*_table(results), *_troubles(results, verbose=verbose), "", *_summary(results)]
    return "".join(f"{printable(line)}\n" for line in lines)


def _table(results: Sequence[Result]) -> Iterator[str]:
    heads = ("transform", "pairs", "equivalent", "with gradients", "wrong ones caught", "device")
    rows = [heads]
    for transform in dict.fromkeys(result.case.transform for result in results):
        mine = [result for result in results if result.case.transform == transform]
        wrong = [one for result in mine for one in result.wrong]
        caught = sum(one.caught for one in wrong)
        same = sum(result.kind is Kind.EQUIVALENT for result in mine)
        with_gradients = [result.verdicts[GRADIENTS].kind for result in mine if GRADIENTS in result.verdicts]
        gradients = with_gradients.count(Kind.EQUIVALENT)
        counts = (str(len(mine)), str(same), str(gradients), f"{caught} of {len(wrong)}")
        rows.append((transform, *counts, ", ".join(devices(mine)) or "not run"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    for row in rows:
        cells = [
            cell.ljust(width) if column in (0, len(heads) - 1) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def devices(results: Sequence[Result]) -> list[str]:
    """Where the cases really ran."""
    return sorted({result.device for result in results if result.device})


def _troubles(results: Sequence[Result], *, verbose: bool) -> Iterator[str]:
    for result in results:
        if verbose or not result.passed or result.case.cannot_run or result.not_compared:
            lines = list(_about(result, verbose=verbose))
            yield from ("", f"{result.case.path}: {state(result)}", *(f"    {line}" for line in lines))


def state(result: Result) -> str:
    """A case's outcome in a word or two."""
    if result.case.problem:
        return f"cannot be read: {result.case.problem}"
    if result.case.cannot_run:
        return f"not run: {result.case.cannot_run}"
    return str(result.kind)


def _about(result: Result, *, verbose: bool) -> Iterator[str]:
    for mode, verdict in result.verdicts.items():
        if verdict.kind is not Kind.EQUIVALENT or verbose:
            yield f"{mode}: {verdict.kind}{f', {verdict.reason}' if verdict.reason else ''}"
            yield from (f"    {one}" for one in verdict.differences[1:_MOST_DIFFERENCES])
            more = len(verdict.differences) - _MOST_DIFFERENCES
            yield from [f"    and {more} more"] * (more > 0)
    if verbose:
        yield from (f"{mode}: left out, {reason}" for mode, reason in result.left_out.items())
    yield from (f"not compared: {path}" for path in result.not_compared)
    for one in result.wrong:
        if not one.caught:
            yield f"{one.name}: not told apart, {one.how}"
        elif verbose:
            yield f"{one.name}: told apart ({one.mode}), {one.how}"


def _summary(results: Sequence[Result]) -> Iterator[str]:
    wrong = [one for result in results for one in result.wrong]
    same = sum(result.kind is Kind.EQUIVALENT for result in results)
    caught = sum(one.caught for one in wrong)
    yield f"{same} of {len(results)} pairs equivalent, {caught} of {len(wrong)} wrong rewrites told apart"
    if caught:
        yield f"told apart by: {', '.join(f'{aspect} {count}' for aspect, count in told_by(results).items())}"
    yield where(results)
    if caveat(results):
        yield caveat(results)
    lacks = confine.missing()
    if lacks:
        yield f"not prevented on this machine: {', '.join(lacks)}"


def told_by(results: Sequence[Result]) -> dict[str, int]:
    """How many wrong rewrites were told apart by which aspect, the most frequent first."""
    return dict(Counter(one.by for result in results for one in result.wrong if one.caught).most_common())


def where(results: Sequence[Result]) -> str:
    """On which device it was verified."""
    found = [_NAMES.get(one, one) for one in devices(results)]
    return f"run on {' and '.join(found)}, torch {torch.__version__}" if found else "nothing was run"


def caveat(results: Sequence[Result]) -> str:
    """What the run could not show, on one line; nothing when all ran on real GPUs, or none ran."""
    return "" if _all_real(results) or not devices(results) else ONLY_A_GPU


def _all_real(results: Sequence[Result]) -> bool:
    found = devices(results)
    return bool(found) and all(one.startswith("cuda") for one in found)


def as_json(results: Sequence[Result]) -> str:
    """The whole report as one object."""
    wrong = [one for result in results for one in result.wrong]
    whole = {
        "version": FORMAT_VERSION,
        "torch": torch.__version__,
        "devices": devices(results),
        "real_gpu": _all_real(results),
        "not_prevented": confine.missing(),
        "pairs": {
            "total": len(results),
            **{str(kind): sum(result.kind is kind for result in results) for kind in Kind},
            "not_run": sum(result.kind is None for result in results),
        },
        "wrong": {"total": len(wrong), "caught": sum(one.caught for one in wrong), "by": told_by(results)},
        "cases": [_case(result) for result in results],
    }
    return json.dumps(whole, indent=1) + "\n"


def _case(result: Result) -> dict[str, Any]:
    case = result.case
    return {
        "transform": case.transform,
        "case": case.name,
        "outcome": str(result.kind) if result.kind else "not run",
        "passed": result.passed,
        "reason": case.problem or case.cannot_run,
        "device": result.device or None,
        "not_compared": result.not_compared,
        "modes": {mode: _mode(result, mode) for mode in MODES},
        "wrong": [_wrong(one) for one in result.wrong],
    }


def _mode(result: Result, mode: str) -> dict[str, Any]:
    verdict = result.verdicts.get(mode)
    if verdict is None:
        return {"outcome": "left out", "reason": result.left_out.get(mode, "not run"), "differences": []}
    return {"outcome": str(verdict.kind), "reason": verdict.reason, "differences": _differences(verdict)}


def _differences(verdict: Verdict) -> list[dict[str, str]]:
    return [
        {"path": one.path, "aspect": one.aspect, "before": one.before, "after": one.after}
        for one in verdict.differences
    ]


def _wrong(one: Wrong) -> dict[str, Any]:
    return {"file": one.name, "caught": one.caught, "mode": one.mode or None, "by": one.by or None, "how": one.how}


def battery_text(results: Sequence[BatteryResult], device: str) -> str:
    """The checks that did not pass, and a count."""
    lines = [str(one) for one in results if one.status != "passed"]
    counts = ", ".join(f"{_count(results, status)} {status}" for status in ("passed", "failed", "skipped"))
    lines.append(f"{len(results)} checks on {_NAMES.get(device, device)}, torch {torch.__version__}: {counts}")
    return "".join(f"{printable(line)}\n" for line in lines)


def battery_json(results: Sequence[BatteryResult], device: str) -> str:
    """The same as one object."""
    whole = {
        "version": FORMAT_VERSION,
        "torch": torch.__version__,
        "devices": [device],
        "real_gpu": device.startswith("cuda"),
        **{status: _count(results, status) for status in ("passed", "failed", "skipped")},
        "checks": [{"name": one.name, "outcome": one.status, "reason": one.reason} for one in results],
    }
    return json.dumps(whole, indent=1) + "\n"


def _count(results: Sequence[BatteryResult], status: str) -> int:
    return sum(one.status == status for one in results)
