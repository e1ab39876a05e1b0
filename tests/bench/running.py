"""Commands run in turn and timed, with a warm-up that makes sure that they do their work."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import IO, NamedTuple

RSS_UNIT = 1 if sys.platform == "darwin" else 1024
"""What `ru_maxrss` counts in."""


class CouldNotRun(Exception):
    """Something could not be installed or run: what, and what it said."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A command to be timed, and the lines of code that it goes over.

    A run is good when its status is one of ``fine`` and a line of its output holds the pattern ``tells``.
    """

    name: str
    command: tuple[str, ...]
    lines: int = 0
    fine: tuple[int, ...] = (0, 1)
    tells: str = ""
    prepare: Callable[[], object] = lambda: None


class Sample(NamedTuple):
    """One run: wall clock and processor seconds, and the bytes that the largest of its processes held.

    The kernel lets a process begin with what the one that started it holds: here, some 25 MB.
    """

    seconds: float
    processor: float
    memory: int


@dataclass(frozen=True, slots=True)
class Result:
    """All runs of a contender, and what it said of its work in the warm-up."""

    contender: Contender
    samples: tuple[Sample, ...]
    told: str

    @property
    def seconds(self) -> float:
        """The median."""
        return median(sample.seconds for sample in self.samples)

    @property
    def rate(self) -> float:
        """Lines a second; runs a second where lines are not what counts."""
        return (self.contender.lines or 1) / self.seconds


def race(contenders: Sequence[Contender], rounds: int) -> dict[str, Result]:
    """Run all contenders in turn, round after round, after one warm-up."""
    told = {one.name: warm_up(one) for one in contenders}
    samples: dict[str, list[Sample]] = {one.name: [] for one in contenders}
    for number in range(1, rounds + 1):
        for one in contenders:
            say(f"round {number} of {rounds}: {one.name}")
            one.prepare()
            samples[one.name].append(timed(one))
    return {one.name: Result(one, tuple(samples[one.name]), told[one.name]) for one in contenders}


def warm_up(one: Contender) -> str:
    """Run a contender untimed; gives what it tells of its work. Raises CouldNotRun when it did not do it.

    The output goes through files: what this process holds would count as memory of those that it starts.
    """
    say(f"warm-up: {one.name}")
    one.prepare()
    told = None if one.tells else ""
    last: deque[str] = deque(maxlen=20)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        status = ended(one.command, out, err)
        for stream in (out, err):
            stream.seek(0)
            for line in stream:
                last.append(line[:300].decode(errors="replace"))
                found = re.search(one.tells, last[-1])
                told = found[0] if found else told
    if status not in one.fine or told is None:
        problem = f"ended with status {status}" if told is not None else f"wrote no line like `{one.tells}`"
        raise CouldNotRun(f"{shown(one.command)} {problem}:\n{''.join(last).strip()}")
    return told


def ended(command: Sequence[str], out: IO[bytes], err: IO[bytes]) -> int:
    """Run a command to its end, and give its status; raises CouldNotRun when it cannot even be started."""
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, check=False).returncode
    except OSError as error:
        raise CouldNotRun(f"{shown(command)} cannot be started: {error}") from None


def timed(one: Contender) -> Sample:
    """Run a contender with its output thrown away."""
    null = subprocess.DEVNULL
    started = time.perf_counter()
    process = subprocess.Popen(one.command, stdin=null, stdout=null, stderr=null)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in one.fine:
        raise CouldNotRun(f"{shown(one.command)} ended with status {process.returncode}, but not in the warm-up")
    return Sample(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * RSS_UNIT)


def must(command: Sequence[str]) -> str:
    """The output of a command that has to succeed."""
    with tempfile.TemporaryFile() as said:
        status = ended(command, said, said)
        said.seek(0)
        text = said.read().decode(errors="replace").strip()
    if status:
        raise CouldNotRun(f"{shown(command)} failed:\n{text[-2000:]}")
    return text


def shown(command: Sequence[str]) -> str:
    """A command for a message; the many files of a sample are left out."""
    text = shlex.join(command)
    return f"`{text if len(text) < 300 else text[:300] + ' …'}`"


def say(text: str) -> None:
    """Show on a terminal what is going on; nothing takes the line back."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
