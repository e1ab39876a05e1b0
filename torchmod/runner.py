"""Many files: which have to be looked at, over how many processes; a stable order whatever happens on the way."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from torchmod.discover import Found, discover, is_generated, is_python
from torchmod.model import Outcome, Status
from torchmod.prefilter import Prefilter
from torchmod.selection import rows
from torchmod.settings import Settings

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.context import BaseContext

    from torchmod.engine import Engine, Job, Plan

IN_PROCESS_FILES, IN_PROCESS_BYTES = 12, 150_000
"""Up to here, starting processes costs more than it saves."""
CHUNK_BYTES = 120_000


class Progress(Protocol):
    """Told, now and then, how many of how many files are done."""

    def __call__(self, done: int, total: int, /) -> None: ...


@dataclass(slots=True)
class Run:
    """What came of a run. ``outcomes`` holds the files with something to tell, in the order of their paths."""

    outcomes: list[Outcome] = field(default_factory=list)
    checked: int = 0

    def count(self, *statuses: Status) -> int:
        """How many files have one of these statuses."""
        return sum(outcome.status in statuses for outcome in self.outcomes)

    @property
    def changed(self) -> list[Outcome]:
        """The files that change, or would."""
        return [outcome for outcome in self.outcomes if outcome.new is not None]


@dataclass(frozen=True, slots=True)
class Task:
    """What to do with the files: only find, or make the fixes too; and whether every fix's edits are wanted."""

    apply: bool = False
    build: bool = False


def run_paths(paths: Sequence[str], settings: Settings, task: Task, progress: Progress) -> Run:
    """Look at the files under some paths; writes nothing. Raises TorchmodError for what the user got wrong."""
    chosen = rows(settings)
    prefilter = Prefilter(chosen.values())
    patterns = sorted({pattern for row in chosen.values() for pattern in row.documents})
    every_file = any(row.on_project for row in chosen.values())
    run = Run()
    waiting: list[tuple[str, bytes]] = []
    for found in discover(paths, settings, patterns):
        if found.reason:
            run.outcomes.append(Outcome(found.path, Status.SKIPPED, found.reason))
            continue
        run.checked += 1
        data = _read(found, settings, run)
        if data is None or not (every_file or not is_python(found.path) or prefilter.wants(data)):
            continue
        if is_generated(data) and not found.explicit:
            run.outcomes.append(Outcome(found.path, Status.SKIPPED, "a program wrote this file (it says so itself)"))
            continue
        waiting.append((found.path, data))
    if waiting:
        run.outcomes += _run_files(waiting, settings, task, progress)
        run.outcomes.sort(key=lambda outcome: outcome.path)
    return run


def run_text(path: str, data: bytes, settings: Settings, task: Task) -> Run:
    """Look at one text, such as standard input, under the name of a file."""
    from torchmod.engine import Engine, Job

    return Run([Engine(make_plan(settings, task)).run(Job(path, data, is_python(path)))], 1)


def make_plan(settings: Settings, task: Task) -> Plan:
    """The chosen transforms, imported, and what to do with what they find."""
    from torchmod.engine import Plan
    from torchmod.registry import discover as discover_transforms

    known = discover_transforms(settings.plugins)
    chosen = rows(settings)
    return Plan(
        tuple(known[name] for name in chosen if name in known),
        frozenset(known),
        settings.levels,
        settings.versions,
        task.apply,
        task.build,
    )


def _read(found: Found, settings: Settings, run: Run) -> bytes | None:
    """A file's bytes, or None when it is named as a problem."""
    try:
        size = os.stat(found.path).st_size
        if size > settings.max_file_size:
            limit = f"larger than {settings.max_file_size:,} bytes (the setting max-file-size)"
            run.outcomes.append(Outcome(found.path, Status.SKIPPED, limit))
            return None
        with open(found.path, "rb") as file:
            return file.read()
    except OSError as error:
        run.outcomes.append(Outcome(found.path, Status.UNREADABLE, f"cannot be read: {error.strerror}"))
        return None


def _run_files(
    waiting: Sequence[tuple[str, bytes]], settings: Settings, task: Task, progress: Progress
) -> list[Outcome]:
    import gc

    from torchmod.engine import Job
    from torchmod.rounds import run_rounds

    gc.disable()  # trees are kept and hold no rubbish; collecting costs more than parsing
    plan = make_plan(settings, task)
    jobs = [Job(path, data, is_python(path)) for path, data in waiting]
    processes = settings.jobs or available_processors()
    small = len(jobs) <= IN_PROCESS_FILES and sum(len(job.data) for job in jobs) <= IN_PROCESS_BYTES

    def run(some: Sequence[Job]) -> list[Outcome]:
        if processes == 1 or small:
            return _here(plan, some, progress)
        with _Pool(settings, task, processes, progress) as pool:
            return pool.run(some)

    return run_rounds(plan, jobs, run)


def available_processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _here(plan: Plan, jobs: Sequence[Job], progress: Progress) -> list[Outcome]:
    from torchmod.engine import Engine

    engine = Engine(plan)
    outcomes = []
    for job in jobs:
        outcomes.append(engine.run(job))
        progress(len(outcomes), len(jobs))
    return outcomes


# over several processes

_engine: Engine | None = None
"""A worker process's own engine."""


def _start_worker(settings: Settings, task: Task) -> None:
    import gc
    import signal

    global _engine  # noqa: PLW0603
    from torchmod.engine import Engine

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it ends the workers
    gc.disable()
    _engine = Engine(make_plan(settings, task))


def _work(jobs: Sequence[Job]) -> list[Outcome]:
    assert _engine is not None
    return [_engine.run(job) for job in jobs]


class _Pool:
    """Worker processes. One that dies takes nothing with it: its files are tried again, in the end each alone."""

    def __init__(self, settings: Settings, task: Task, processes: int, progress: Progress) -> None:
        self._settings = settings
        self._task = task
        self._processes = processes
        self._progress = progress
        self._done: dict[str, Outcome] = {}
        self._total = 0

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *error: object) -> None:
        import multiprocessing

        for child in multiprocessing.active_children():  # none is left, unless we were interrupted
            child.kill()
            child.join()

    def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        """The outcomes, in the order of the jobs."""
        self._total = len(jobs)
        chunks = list(_chunks(jobs))
        with self._executor(min(self._processes, len(chunks))) as executor:
            lost = self._collect(executor, chunks)
        while lost:
            lost = self._one_by_one(lost)
        return [self._done[job.path] for job in jobs]

    def _collect(self, executor: ProcessPoolExecutor, chunks: Sequence[Sequence[Job]]) -> list[Job]:
        """Run chunks side by side; gives back the files that were lost because a worker died."""
        from concurrent.futures import FIRST_COMPLETED, wait
        from concurrent.futures.process import BrokenProcessPool

        lost: list[Job] = []
        futures: dict[Future[list[Outcome]], Sequence[Job]] = {}
        for chunk in chunks:
            try:
                futures[executor.submit(_work, chunk)] = chunk
            except BrokenProcessPool:
                lost += chunk
        pending = set(futures)
        while pending:
            ready, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in ready:
                try:
                    self._done |= {outcome.path: outcome for outcome in future.result()}
                except BrokenProcessPool:
                    lost += futures[future]
            self._progress(len(self._done), self._total)
        return lost

    def _one_by_one(self, jobs: Sequence[Job]) -> list[Job]:
        """Run files in one worker, so that it is known which of them it dies on; gives back those after that one."""
        from concurrent.futures.process import BrokenProcessPool

        with self._executor(1) as executor:
            for index, job in enumerate(jobs):
                try:
                    self._done[job.path] = executor.submit(_work, [job]).result()[0]
                except BrokenProcessPool:
                    reason = "left as it was: a worker process died on it, twice"
                    self._done[job.path] = Outcome(job.path, Status.FAILED, reason)
                    return list(jobs[index + 1 :])
                self._progress(len(self._done), self._total)
        return []

    def _executor(self, processes: int) -> ProcessPoolExecutor:
        from concurrent.futures import ProcessPoolExecutor

        initial = (self._settings, self._task)
        return ProcessPoolExecutor(processes, _context(), _start_worker, initial)


def _context() -> BaseContext:
    """Fork where it is safe (we have no threads yet), else a fresh interpreter."""
    import multiprocessing
    import sys
    import threading

    fork = sys.platform == "linux" and threading.active_count() == 1
    return multiprocessing.get_context("fork" if fork else "spawn")


def _chunks(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """Neighbouring files together, about the same number of bytes each."""
    chunk: list[Job] = []
    size = 0
    for job in jobs:
        chunk.append(job)
        size += len(job.data)
        if size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
