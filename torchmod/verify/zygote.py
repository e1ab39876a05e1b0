"""Runs programs and functions in fresh processes, a few at a time, and always comes back with one clear answer each.

This process imports torch once and forks a child a run, which costs milliseconds; it never runs a program itself and
never touches CUDA. Where there is no fork, a new Python is started a run, which costs seconds.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import io
import os
import pkgutil
import select
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch

from torchmod.verify import child, observe, scratch, shared_memory, simulated
from torchmod.verify.compare import compare
from torchmod.verify.confine import Limits, usage, waited
from torchmod.verify.trace import Device, Ended, Job, Status, Trace

CAN_FORK = sys.platform not in ("win32", "darwin")
"""macOS has fork, but its own libraries do not survive it."""
_LOOK_EVERY = 0.1
"""Seconds between two looks at what the running children use."""
_MOST_WAITED = 10
"""On a busy machine a child gets as much more time as it waited for a processor, up to so many times its limit."""
_HEAVY = {
    "torch._dynamo": ("optim", "checkpoint", "compile"),
    "torch.fx.experimental.symbolic_shapes": ("grad", "backward"),
    "h5py": ("h5py",),
}
"""What a child would import by itself, with words that tell that it will: imported once, here."""


def run_jobs(
    jobs: Sequence[Job], limits: Limits | None = None, *, workers: int | None = None, fork: bool = CAN_FORK
) -> list[Trace]:
    """The traces of all jobs, in their order."""
    if fork:
        _warm(jobs)
    tasks = [partial(observe.run_plain, job) for job in jobs]
    return [_trace(ended) for ended in run_functions(tasks, limits, workers=workers, fork=fork)]


def run_function(function: Callable[[], Any], limits: Limits | None = None, *, fork: bool = CAN_FORK) -> Ended:
    """Call a function in a fresh process. It returns plain data; where there is no fork it has to be picklable."""
    return run_functions([function], limits, fork=fork)[0]


def run_functions(
    functions: Iterable[Callable[[], Any]],
    limits: Limits | None = None,
    *,
    workers: int | None = None,
    fork: bool = CAN_FORK,
) -> list[Ended]:
    """Call each function in a fresh process, ``workers`` at a time (default: one a processor); in their order."""
    limits = limits or Limits()
    waiting = list(enumerate(functions))[::-1]
    most = max(1, workers or os.cpu_count() or 1)
    shared_memory.can_be_private()  # found out once, for all children
    done: dict[int, Ended] = {}
    running: dict[int, _Run] = {}
    torch.set_num_threads(1)  # a pool of threads would not survive the fork
    gc.freeze()  # children must not walk, and so copy, what is here
    try:
        while waiting or running:
            while waiting and len(running) < most:
                index, function = waiting.pop()
                running[index] = _Run(function, limits, fork=fork)
            _wait([run.process.pid for run in running.values()])
            for index, run in list(running.items()):
                ended = run.look()
                if ended is not None:
                    done[index] = ended
                    del running[index]
    finally:
        for run in running.values():  # after an interrupt
            run.stop()
        gc.unfreeze()
    return [done[index] for index in sorted(done)]


class _Run:
    """One child, from its start to its answer."""

    def __init__(self, function: Callable[[], Any], limits: Limits, *, fork: bool) -> None:
        self.limits = limits
        self.scratch = scratch.make()
        self.began = time.time()
        self.started = self.looked = time.monotonic()
        try:
            self.process = (child.fork if fork else child.spawn)(function, self.scratch, limits)
        except BaseException:
            scratch.remove(self.scratch)
            raise

    def look(self) -> Ended | None:
        """Its answer, or None while it runs and may go on."""
        code, now = self.process.poll(), time.monotonic()
        ended = self._excess(now) if code is None else child.answer(self.scratch, code, self.limits)
        if ended is None:
            return None
        self.stop()
        return Ended(ended.status, ended.value, ended.reason, now - self.started)

    def _excess(self, now: float) -> Ended | None:
        """How a child ends that has used more than it may."""
        limits = self.limits
        late = now - self.started - limits.seconds - self.process.head_start
        if late > 0 and late > min(waited(self.process.pid), _MOST_WAITED * limits.seconds):
            return Ended(Status.TIMEOUT, reason=f"stopped: not finished after {limits.seconds:g} s")
        if now - self.looked < _LOOK_EVERY:
            return None
        self.looked = now
        used = usage(self.process.pid)
        if used.processes > limits.processes:
            return Ended(Status.DIED, reason=f"stopped: it ran more than {limits.processes} processes at once")
        if used.memory > limits.memory:
            return Ended(Status.DIED, reason=f"stopped: it used more than {limits.memory >> 20} MiB of memory")
        return None

    def stop(self) -> None:
        """End it and what it left behind, and remove its folder."""
        self.process.kill()
        scratch.remove(self.scratch)
        shared_memory.remove_left(self.began)


def _wait(processes: Sequence[int]) -> None:
    """Until one of them ends, or it is time to look at them again."""
    if not hasattr(os, "pidfd_open"):
        time.sleep(0.01)
        return
    poll = select.poll()
    with contextlib.ExitStack() as opened:
        for process in processes:
            number = os.pidfd_open(process)
            opened.callback(os.close, number)
            poll.register(number, select.POLLIN)
        poll.poll(_LOOK_EVERY * 1000)


def _warm(jobs: Sequence[Job]) -> None:
    """Import what the children will need, so that each of them has it already."""
    if importlib.util.find_spec("numpy"):
        importlib.import_module("numpy.random")  # every child seeds it
    if any(job.device is not Device.CPU for job in jobs):
        for found in pkgutil.iter_modules(simulated.__path__, f"{simulated.__name__}."):
            importlib.import_module(found.name)
    if any(job.legacy for job in jobs):
        importlib.import_module("torchmod.verify.legacy")
    text = "".join({job.source for job in jobs} | {job.setup for job in jobs})
    text += "grad" * any(job.inputs_require_grad for job in jobs)
    for name, words in _HEAVY.items():
        if any(word in text for word in words):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    torch.save(torch.ones(2).clone(), io.BytesIO())


def _trace(ended: Ended) -> Trace:
    """The trace in an answer, or one that says why there is none."""
    if ended.status is Status.RAN:
        try:
            trace = Trace.from_plain(ended.value)
            if trace.device.startswith("cuda") and not simulated.real_cuda():
                raise ValueError(f"it says that it ran on {trace.device}, which is not here")
            compare(trace, trace)  # whatever holds another thing than it should is found here
        except Exception as error:
            reason = f"what it wrote is no trace: {type(error).__name__}: {error}"
            return Trace(Status.BAD_TRACE, child.one_line(reason), seconds=ended.seconds)
        trace.seconds = ended.seconds
        return trace
    status = Status.BAD_TRACE if ended.status is Status.RAISED else ended.status
    return Trace(status, ended.reason, seconds=ended.seconds)
