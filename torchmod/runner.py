"""Many files: which have to be looked at, over how many processes; a stable order whatever happens on the way."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from torchmod.basics import UNUSED_SUPPRESSION, Status
from torchmod.discover import Found, discover, is_excluded, is_generated, is_python, matcher
from torchmod.prefilter import Prefilter
from torchmod.selection import hears_unused, rows
from torchmod.settings import Settings

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.context import BaseContext

    from torchmod.engine import Engine, Job, Plan
    from torchmod.model import Outcome

IN_PROCESS_FILES, IN_PROCESS_BYTES = 12, 150_000
"""Up to here, starting processes costs more than it saves."""
CHUNK_FILES, CHUNK_BYTES = 32, 120_000
"""Up to here, files go to a worker process together."""


class Progress(Protocol):
    """Told, now and then, how many of how many files are done."""

    def __call__(self, done: int, total: int, /) -> None: ...


class Run:
    """What came of a run. ``outcomes`` holds the files with something to tell, in the order of their paths."""

    def __init__(self, outcomes: Iterable[Outcome] = (), checked: int = 0) -> None:
        self.outcomes = list(outcomes)
        self.checked = checked

    def count(self, *statuses: Status) -> int:
        """How many files have one of these statuses."""
        return sum(outcome.status in statuses for outcome in self.outcomes)

    @property
    def changed(self) -> list[Outcome]:
        """The files that change, or would."""
        return [outcome for outcome in self.outcomes if outcome.new is not None]


class Task(NamedTuple):
    """What to do with the files: only find, or make the fixes too; and whether every fix's edits are wanted."""

    apply: bool = False
    build: bool = False


def run_paths(paths: Sequence[str], settings: Settings, task: Task, progress: Progress) -> Run:
    """Look at the files under some paths; writes nothing. Raises TorchmodError for what the user got wrong."""
    chosen = rows(settings)
    prefilter = Prefilter(chosen.values())
    patterns = sorted({pattern for row in chosen.values() for pattern in row.documents})
    is_document = matcher(patterns)
    every_file = any(row.on_project for row in chosen.values())
    run = Run()
    waiting: list[tuple[str, bytes, bool]] = []
    for found in discover(paths, settings, patterns):
        data = _read(found, settings, run)
        if data is None:
            continue
        python = is_python(found.path, data)
        wanted = (every_file or prefilter.wants(data)) if python else is_document(os.path.basename(found.path))
        if not python and not wanted:
            reason = "not Python, by its name or its first line"
        elif wanted and not found.explicit and is_generated(data):
            reason = "a program wrote this file (it says so itself)"
        else:
            run.checked += 1
            if wanted:
                waiting.append((found.path, data, python))
            continue
        run.outcomes.append(_outcome(found.path, Status.SKIPPED, reason))
    if waiting:
        outcomes = _told(_run_files(waiting, settings, task, progress), settings)
        run.checked -= sum(outcome.status is not Status.OK for outcome in outcomes)
        run.outcomes += outcomes
    run.outcomes.sort(key=lambda outcome: outcome.path)
    return run


def run_text(path: str, data: bytes, settings: Settings, task: Task) -> Run:
    """Look at one text, such as standard input, under the name of a file."""
    from torchmod.engine import Engine, Job

    if settings.force_exclude and is_excluded(path, settings):
        return Run([_outcome(path, Status.SKIPPED, "excluded")])
    engine = Engine(make_plan(settings, task))
    outcomes = _told([_look(engine, Job(path, data, is_python(path, data)))], settings)
    return Run(outcomes, sum(outcome.status is Status.OK for outcome in outcomes))


def _outcome(path: str, status: Status, reason: str) -> Outcome:
    """What is told of a file that was not looked at."""
    from torchmod.model import Outcome  # slow to import, and seldom needed

    return Outcome(path, status, reason)


def _told(outcomes: list[Outcome], settings: Settings) -> list[Outcome]:
    """The outcomes without what the user does not want to hear of."""
    if hears_unused(settings):
        return outcomes
    from dataclasses import replace

    return [replace(o, findings=tuple(f for f in o.findings if f.transform != UNUSED_SUPPRESSION)) for o in outcomes]


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
    if found.reason:
        status = Status.UNREADABLE if found.unreadable else Status.SKIPPED
        run.outcomes.append(_outcome(found.path, status, found.reason))
        return None
    try:
        size = os.stat(found.path).st_size
        if size > settings.max_file_size:
            limit = f"larger than {settings.max_file_size:,} bytes (the setting max-file-size)"
            run.outcomes.append(_outcome(found.path, Status.SKIPPED, limit))
            return None
        with open(found.path, "rb") as file:
            return file.read()
    except OSError as error:
        run.outcomes.append(_outcome(found.path, Status.UNREADABLE, f"cannot be read: {error.strerror}"))
        return None


def _run_files(
    waiting: Sequence[tuple[str, bytes, bool]], settings: Settings, task: Task, progress: Progress
) -> list[Outcome]:
    import gc

    from torchmod.engine import Job
    from torchmod.rounds import run_rounds

    plan = make_plan(settings, task)
    jobs = [Job(path, data, python) for path, data, python in waiting]
    processes = settings.jobs or available_processors()
    small = len(jobs) <= IN_PROCESS_FILES and sum(len(job.data) for job in jobs) <= IN_PROCESS_BYTES

    def run(some: Sequence[Job]) -> list[Outcome]:
        if processes == 1 or small:
            return _here(plan, some, progress)
        return _Pool(settings, task, processes, progress).run(some)

    collects = gc.isenabled()
    gc.disable()  # trees are kept and hold no rubbish; collecting costs more than parsing
    try:
        return run_rounds(plan, jobs, run)
    finally:
        if collects:
            gc.enable()


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
        outcomes.append(_look(engine, job))
        progress(len(outcomes), len(jobs))
    return outcomes


def _look(engine: Engine, job: Job) -> Outcome:
    """What comes of one file. A fault of our own is named, and takes no other file with it."""
    from torchmod.rounds import raised

    try:
        return engine.run(job)
    except Exception as error:
        return _lost(job, f"torchmod itself failed, please report it: {raised(error)}")


def _lost(job: Job, reason: str) -> Outcome:
    from torchmod.model import Outcome

    return Outcome(job.path, Status.FAILED, reason, transactions=tuple(number for number, _ in job.seeds))


# over several processes

_engine: Engine | None = None
"""A worker process's own engine."""


def _start_worker(settings: Settings, task: Task) -> None:
    import gc
    import signal
    import threading

    global _engine  # noqa: PLW0603
    from torchmod.engine import Engine

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it ends the workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.disable()
    _engine = Engine(make_plan(settings, task))


def _end_with_parent() -> None:
    """A parent that was killed cannot end its workers."""
    import multiprocessing

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(jobs: Sequence[Job]) -> list[Outcome]:
    assert _engine is not None
    return [_look(_engine, job) for job in jobs]


class _Pool:
    """Worker processes. One that dies takes nothing with it: its files are tried again, in the end each alone."""

    def __init__(self, settings: Settings, task: Task, processes: int, progress: Progress) -> None:
        self._settings = settings
        self._task = task
        self._processes = processes
        self._progress = progress
        self._done: dict[str, Outcome] = {}
        self._total = 0

    def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        """The outcomes, in the order of the jobs."""
        self._total = len(jobs)
        chunks = list(_chunks(jobs))
        while chunks:
            lost = self._side_by_side(chunks)
            # chunks are handed out in order, two for each worker: it was one of the first that a worker died on
            suspects, chunks = lost[: 2 * self._processes + 1], lost[2 * self._processes + 1 :]
            files = [job for chunk in suspects for job in chunk]
            while files:
                files = self._one_by_one(files)
        return [self._done[job.path] for job in jobs]

    def _side_by_side(self, chunks: Sequence[list[Job]]) -> list[list[Job]]:
        """Run chunks over the workers; gives back, in order, those that were lost because a worker died."""
        from concurrent.futures import FIRST_COMPLETED, wait
        from concurrent.futures.process import BrokenProcessPool

        from torchmod.writing import uninterrupted

        futures: list[Future[list[Outcome]]] = []
        with self._executor(min(self._processes, len(chunks))) as executor:
            with uninterrupted(), contextlib.suppress(BrokenProcessPool):  # a worker starts with our signal handlers
                futures += (executor.submit(_work, chunk) for chunk in chunks)
            pending = set(futures)
            while pending:
                ready, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in ready:
                    if future.exception() is None:
                        self._done |= {outcome.path: outcome for outcome in future.result()}
                self._progress(len(self._done), self._total)
        return [chunk for chunk in chunks if any(job.path not in self._done for job in chunk)]

    def _one_by_one(self, jobs: Sequence[Job]) -> list[Job]:
        """Run files in one worker, so that it is known which of them it dies on; gives back those after that one."""
        from concurrent.futures.process import BrokenProcessPool

        from torchmod.rounds import raised
        from torchmod.writing import uninterrupted

        with self._executor(1) as executor:
            for index, job in enumerate(jobs):
                try:
                    with uninterrupted():
                        future = executor.submit(_work, [job])
                    self._done[job.path] = future.result()[0]
                except BrokenProcessPool:
                    self._done[job.path] = _lost(job, "left as it was: a worker process died on it, twice")
                    return list(jobs[index + 1 :])
                except Exception as error:  # what came of it does not go from one process to another
                    self._done[job.path] = _lost(job, f"left as it was: {raised(error)}")
                self._progress(len(self._done), self._total)
        return []

    @contextlib.contextmanager
    def _executor(self, processes: int) -> Iterator[ProcessPoolExecutor]:
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        others = set(multiprocessing.active_children())
        executor = ProcessPoolExecutor(processes, _context(), _start_worker, (self._settings, self._task))
        try:
            yield executor
        except BaseException:  # interrupted: what they are at is not wanted any more
            for child in set(multiprocessing.active_children()) - others:
                child.kill()
            raise
        finally:
            executor.shutdown(cancel_futures=True)


def _context() -> BaseContext:
    """Fork where it is safe (we have no threads yet), else a fresh interpreter."""
    import multiprocessing
    import sys
    import threading

    if sys.platform == "linux" and threading.active_count() == 1:
        return multiprocessing.get_context("fork")
    os.environ["PYTHONSAFEPATH"] = "1"  # a fresh interpreter would look for modules in the working directory first
    return multiprocessing.get_context("spawn")


def _chunks(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """Neighbouring files together, about as much work each."""
    chunk: list[Job] = []
    size = 0
    for job in jobs:
        chunk.append(job)
        size += len(job.data)
        if len(chunk) == CHUNK_FILES or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
