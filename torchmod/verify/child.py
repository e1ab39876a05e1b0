"""One child process: how it is started, what happens in it, and how its answer is read.

Its folder holds ``work`` (where the program runs), ``home``, ``tmp``, what it printed, and at the end its answer.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch

from torchmod.verify import confine
from torchmod.verify.confine import Limits
from torchmod.verify.trace import Ended, Status, printable

_ANSWER, _STDERR, _FUNCTION = "answer", "stderr", "function"
STDOUT = "stdout"
"""The file, beside the working folder, that holds what was printed."""
_LONGEST = 200
"""Characters of somebody else's text in a reason."""


class Process(Protocol):
    """A running child, leader of its own process group."""

    pid: int
    head_start: float
    """Seconds that it needs before its function starts."""

    def poll(self) -> int | None:
        """Its exit status (a negative number is a signal), or None while it runs."""

    def kill(self) -> None:
        """End it and all that it started."""


class _Forked:
    head_start = 0.0

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.code: int | None = None

    def poll(self) -> int | None:
        if self.code is None and os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            self._end_group()  # before its number is free for others
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def kill(self) -> None:
        if self.code is None:
            self._end_group()
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _end_group(self) -> None:
        for end in (os.killpg, os.kill):  # the second where it is killed before it made its group
            with contextlib.suppress(ProcessLookupError, PermissionError):
                end(self.pid, signal.SIGKILL)


class _Spawned:
    head_start = 60.0

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        return self.process.poll()

    def kill(self) -> None:
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()


def fork(function: Callable[[], Any], scratch: str, limits: Limits) -> Process:
    """A child that has everything that this process has imported."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "multi-threaded": torch's threads are idle, and the child uses none
        pid = os.fork()
    if pid:
        return _Forked(pid)
    code = 1
    try:
        os.setsid()
        code = _inside(function, scratch, limits)
    finally:
        os._exit(code)


def spawn(function: Callable[[], Any], scratch: str, limits: Limits) -> Process:
    """A child that starts from nothing."""
    Path(scratch, _FUNCTION).write_bytes(pickle.dumps((function, limits)))
    code = "import sys; sys.path[:] = sys.argv[2:]; from torchmod.verify.child import main; main(sys.argv[1])"
    command = [sys.executable, "-c", code, scratch, *(os.path.abspath(path) for path in sys.path)]
    quiet = subprocess.DEVNULL
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    process = subprocess.Popen(
        command, stdin=quiet, stdout=quiet, stderr=quiet, env=environment, start_new_session=True, cwd=scratch
    )
    return _Spawned(process)


def main(scratch: str) -> None:
    """What a spawned child does."""
    function, limits = pickle.loads(Path(scratch, _FUNCTION).read_bytes())
    os._exit(_inside(function, scratch, limits))


def _inside(function: Callable[[], Any], scratch: str, limits: Limits) -> int:
    """The whole life of a child; gives its exit status."""
    mine = os.getpid()
    _reset(scratch)
    try:
        confine.enter(scratch, limits, address_space=not torch.cuda.is_available())
        os.makedirs("work", exist_ok=True)
        os.chdir("work")
        answer = {"value": function()}
    except BaseException as error:
        traceback.print_exc()
        answer = {"raised": one_line(f"{type(error).__name__}: {error}")}
    if os.getpid() != mine:
        return 0  # a process that the function started came out of it too: only the first one answers
    try:
        _write(answer, scratch)
    except Exception as error:
        _write({"raised": one_line(f"what it found cannot be written: {type(error).__name__}: {error}")}, scratch)
    return 0


def _reset(scratch: str) -> None:
    """Forget what this process inherited from the one that was forked."""
    os.chdir(scratch)
    for number, name in ((0, os.devnull), (1, STDOUT), (2, _STDERR)):
        opened = os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.settrace(None)
    faulthandler.disable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    warnings.resetwarnings()
    torch.set_num_threads(1)


def _write(answer: dict[str, Any], scratch: str) -> None:
    """Whole or not at all."""
    part = os.path.join(scratch, "part")
    torch.save(answer, part)
    os.replace(part, os.path.join(scratch, _ANSWER))


def answer(scratch: str, code: int, limits: Limits) -> Ended:
    """What a child that has ended left."""
    path = os.path.join(scratch, _ANSWER)
    if code != 0 or not os.path.isfile(path):
        return Ended(Status.DIED, reason=_death(code, limits, Path(scratch, _STDERR)))
    try:
        data = torch.load(path, weights_only=True)
    except Exception as error:
        return Ended(Status.BAD_TRACE, reason=f"what it wrote cannot be read: {one_line(str(error))}")
    if isinstance(data, dict) and "value" in data:
        return Ended(Status.RAN, data["value"])
    if isinstance(data, dict) and isinstance(data.get("raised"), str):
        return Ended(Status.RAISED, reason=one_line(data["raised"]))
    return Ended(Status.BAD_TRACE, reason="what it wrote is no answer")


def _death(code: int, limits: Limits, stderr: Path) -> str:
    """Why there is no answer."""
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        if name == "SIGXCPU":
            return f"stopped: it used more than {limits.seconds:g} s of processor time"
        reason = f"killed by {name}"
    else:
        reason = f"it ended its own process, with status {code}"
    lines: list[str] = []
    try:
        if stderr.is_file():  # else the program has put something there that may never end
            with stderr.open("rb") as file:
                file.seek(max(0, stderr.stat().st_size - 4096))
                lines = file.read(4096).decode("utf-8", "backslashreplace").split("\n")
    except OSError:
        pass
    last = next((line for line in reversed(lines) if line.strip()), "")
    return f"{reason} ({one_line(last)})" if last else reason


def one_line(text: str) -> str:
    """Printable, on one line, and short."""
    text = printable(" ".join(text.split()).encode("ascii", "backslashreplace").decode())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
