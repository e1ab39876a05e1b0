"""Children that hang, eat, fork, write outside, print binary, kill themselves: one clear line each, and on it goes."""

import os
import sys
import time
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing is run and compared")

from torchmod.verify import confine, landlock
from torchmod.verify.confine import Limits
from torchmod.verify.trace import Device, Ended, Job, Status, Trace
from torchmod.verify.zygote import CAN_FORK, run_function, run_functions, run_jobs

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="there is no fork here")
LIMITS = Limits(seconds=3, memory=1 << 30, file_size=1 << 20)
OUTSIDE = "torchmod-verify-writes-outside"
PROGRAMS = {
    "good": "x = 1",
    "sleeps": "import time; time.sleep(60)",
    "spins": "while True: pass",
    "allocates": "x = bytearray(8 << 30)",
    "fills": f"with open('big', 'wb') as file:\n    file.write(bytes({2 << 20}))",
    "forks": "import os\nwhile True: os.fork()",
    "forks once": "import os\nif os.fork() == 0: x = 'child'\nelse: x = 'parent'",
    "leaves a process": "import subprocess; x = subprocess.Popen(['sleep', '60']).pid",
    "escapes": "import os; os.setsid()",
    "writes outside": f"open('/var/tmp/{OUTSIDE}', 'w')",
    "prints binary": "import sys; sys.stdout.buffer.write(b'\\xff\\x00\\x1b[2J')",
    "prints much": "print('x' * 900_000)",
    "kills itself": "import os; os.kill(os.getpid(), 9)",
    "exits": "import os; os._exit(7)",
    "exits well": "import sys; x = 1; sys.exit()",
    "segfaults": "import ctypes; ctypes.string_at(0)",
    "says why": "import os, sys; print('no\\x07 such\\n  \\n', file=sys.stderr); sys.stderr.flush(); os._exit(1)",
    "recurses": "def f(): f()\nf()",
    "closes": "import os; os.closerange(0, 20); x = 1",
    "forges": "import os; open('../answer', 'wb').write(b'junk'); os._exit(0)",
    "talks": "import socket; socket.create_connection(('127.0.0.1', 9))",
    "reads secrets": "import os; x = sorted(name for name in os.environ if 'TOKEN' in name)",
    "is no Python": "x = = 1",
    "good again": "x = 2",
}
SIGNALS_STAY_INSIDE = landlock.version() >= 6
if SIGNALS_STAY_INSIDE:  # else this process would be ended
    PROGRAMS["kills its parent"] = "import os; os.kill(os.getppid(), 9)"


@pytest.fixture(scope="module")
def traces() -> dict[str, Trace]:
    """All programs in one go: what one does, the next must survive."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MY_TOKEN", "secret")
        jobs = [Job(source, device=Device.CPU) for source in PROGRAMS.values()]
        return dict(zip(PROGRAMS, run_jobs(jobs, LIMITS, workers=4), strict=True))


def value(trace: Trace, name: str = "x") -> object:
    return trace.values[name]["value"]


def test_every_program_gets_an_answer_of_one_printable_line(traces: dict[str, Trace]) -> None:
    for name, trace in traces.items():
        assert trace.reason.isprintable(), name
        assert (trace.status is Status.RAN) == (not trace.reason), name


def test_the_run_goes_on(traces: dict[str, Trace]) -> None:
    assert (value(traces["good"]), value(traces["good again"])) == (1, 2)


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("sleeps", Status.TIMEOUT, "stopped: not finished after 3 s"),
        ("kills itself", Status.DIED, "killed by SIGKILL"),
        ("exits", Status.DIED, "it ended its own process, with status 7"),
        ("segfaults", Status.DIED, "killed by SIGSEGV"),
        ("says why", Status.DIED, "it ended its own process, with status 1 (no\\x07 such)"),
    ],
)
def test_what_ends_a_program(traces: dict[str, Trace], name: str, status: Status, reason: str) -> None:
    assert (traces[name].status, traces[name].reason) == (status, reason)


def test_a_program_that_spins_is_stopped_by_whichever_clock_is_first(traces: dict[str, Trace]) -> None:
    assert traces["spins"].status in (Status.TIMEOUT, Status.DIED)
    assert traces["spins"].reason.startswith("stopped: ")


@pytest.mark.parametrize(
    ("name", "exception"),
    [
        ("allocates", "MemoryError (line 1)"),
        ("fills", "OSError: [Errno 27] File too large (line 2)"),
        ("recurses", "RecursionError: maximum recursion depth exceeded (line 1)"),
        ("is no Python", "SyntaxError: invalid syntax (line 1)"),
    ],
)
def test_what_a_program_raises_is_in_its_trace(traces: dict[str, Trace], name: str, exception: str) -> None:
    assert str(traces[name].exception) == exception


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are counted through /proc")
def test_a_program_that_forks_without_end_is_stopped(traces: dict[str, Trace]) -> None:
    assert traces["forks"].reason == "stopped: it ran more than 32 processes at once"


def test_of_a_program_that_forks_the_first_process_answers(traces: dict[str, Trace]) -> None:
    assert value(traces["forks once"]) == "parent"


def test_what_a_program_leaves_behind_is_ended(traces: dict[str, Trace]) -> None:
    process = value(traces["leaves a process"])
    assert isinstance(process, int)
    for _ in range(50):
        state = Path(f"/proc/{process}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.02)
    pytest.fail("the process is still there")


@pytest.mark.skipif("writing outside the scratch folder" in confine.missing(), reason="no Landlock in this kernel")
def test_writing_outside_is_refused(traces: dict[str, Trace]) -> None:
    assert str(traces["writes outside"].exception).startswith("PermissionError: [Errno 13] Permission denied")
    assert not Path("/var/tmp", OUTSIDE).exists()


@pytest.mark.skipif("use of the network" in confine.missing(), reason="no system call filter for this machine")
@pytest.mark.parametrize("name", ["talks", "escapes"])
def test_the_network_and_leaving_the_group_are_refused(traces: dict[str, Trace], name: str) -> None:
    assert str(traces[name].exception) == "PermissionError: [Errno 1] Operation not permitted (line 1)"


@pytest.mark.skipif(not SIGNALS_STAY_INSIDE, reason="this kernel's Landlock does not keep signals inside")
def test_signals_to_other_processes_are_refused(traces: dict[str, Trace]) -> None:
    assert str(traces["kills its parent"].exception).startswith("PermissionError")


def test_binary_output_is_kept_as_text(traces: dict[str, Trace]) -> None:
    assert traces["prints binary"].output.text == "\\xff\x00\x1b[2J"


def test_of_much_output_the_beginning_and_the_length_are_kept(traces: dict[str, Trace]) -> None:
    output = traces["prints much"].output
    assert (len(output.text), output.length) == (20_000, 900_001)


def test_leaving_by_sys_exit_is_no_failure(traces: dict[str, Trace]) -> None:
    trace = traces["exits well"]
    assert (trace.status, trace.exception, value(trace)) == (Status.RAN, None, 1)


def test_a_program_may_close_everything(traces: dict[str, Trace]) -> None:
    assert value(traces["closes"]) == 1


def test_a_forged_trace_is_a_bad_trace(traces: dict[str, Trace]) -> None:
    assert traces["forges"].status is Status.BAD_TRACE


def test_secrets_are_not_in_the_environment(traces: dict[str, Trace]) -> None:
    assert traces["reads secrets"].values["x"]["length"] == 0


def double(number: int) -> int:
    time.sleep(0.05 * (number == 1))  # the first ends last
    return number * 2


def test_functions_answer_in_their_order() -> None:
    ended = run_functions([partial(double, number) for number in (1, 2, 3)], workers=3)
    assert [one.value for one in ended] == [2, 4, 6]


def fail() -> None:
    raise ValueError("no\nsuch thing")


def test_a_function_that_raises_says_so_in_one_line() -> None:
    ended = run_function(fail)
    assert (ended.status, ended.reason) == (Status.RAISED, "ValueError: no such thing")


def unreadable() -> object:
    return double


def test_a_function_that_returns_code_gives_a_bad_trace() -> None:
    assert run_function(unreadable).status is Status.BAD_TRACE


def where() -> list[str]:
    return [os.getcwd(), os.environ["HOME"], os.environ["TMPDIR"]]


@pytest.mark.parametrize("fork", [True, False], ids=["fork", "spawn"])
def test_a_child_has_folders_of_its_own_that_are_gone_afterwards(fork: bool) -> None:
    ended: Ended = run_function(where, fork=fork)
    assert ended.status is Status.RAN, ended.reason
    assert len(set(ended.value)) == 3
    assert not any(Path(folder).exists() for folder in ended.value)
