"""Children that hang, eat, fork, write outside, print binary, kill themselves: one clear line each, and on it goes."""

import mmap
import os
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing is run and compared")

from torchmod.verify import confine, landlock, scratch, shared_memory, zygote
from torchmod.verify.confine import Limits
from torchmod.verify.simulated import real_cuda
from torchmod.verify.trace import Device, Ended, Job, Status, Trace
from torchmod.verify.zygote import CAN_FORK, run_function, run_functions, run_jobs

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="there is no fork here")
LIMITS = Limits(seconds=3, memory=1 << 30, file_size=1 << 20)
PATIENT = replace(LIMITS, seconds=30)
"""For the programs that end by themselves, however busy the machine is."""
ENDLESS = ("sleeps", "spins")
OUTSIDE = "torchmod-verify-writes-outside"
LITTLE_ROOM = """
import sys
for room in range(1, 1000):
    try:
        sys.setrecursionlimit(room)
        break
    except RecursionError:
        pass
sys.setrecursionlimit(room + 8)
x = [[[[[[1]]]]]]
"""
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
    "has little room": LITTLE_ROOM,
    "closes": "import os; os.closerange(0, 20); x = 1",
    "forges": "import os; open('../answer', 'wb').write(b'junk'); os._exit(0)",
    "talks": "import socket; socket.create_connection(('127.0.0.1', 9))",
    "reads secrets": "import os; x = sorted(name for name in os.environ if 'TOKEN' in name)",
    "is no Python": "x = = 1",
    "changes its parent's limits": "import os, resource; resource.prlimit(os.getppid(), resource.RLIMIT_CORE)",
    "slows its parent down": "import os; os.setpriority(os.PRIO_PROCESS, os.getppid(), 5)",
    "slows everybody down": "import os; os.setpriority(os.PRIO_USER, 0, 5)",
    "moves its parent": "import os; os.sched_setaffinity(os.getppid(), os.sched_getaffinity(0))",
    "changes itself": "import os, resource\n"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))\n"
    "resource.prlimit(os.getpid(), resource.RLIMIT_CORE, (0, 0))\n"
    "os.nice(1); os.setpriority(os.PRIO_PROCESS, os.getpid(), 5)\n"
    "os.sched_setaffinity(0, os.sched_getaffinity(0)); x = 1",
    "leaves shared memory": f"open('/dev/shm/torch_1_{OUTSIDE}', 'w').close(); x = 1",
    "puts a pipe there": "import os; os.remove('../stderr'); os.mkfifo('../stderr'); os._exit(4)",
    "good again": "x = 2",
}
ODD = {
    "no list": "t.warnings = None",
    "no number": "t.held_nodes = '1'",
    "no snapshot": "t.values = {'x': 3}",
    "no kind": "t.values = {'x': {'kind': 'nope'}}",
    "a kind that is a list": "t.values = {'x': {'kind': []}}",
    "half a tensor": "t.values = {'x': {'kind': 'tensor', 'shape': [2]}}",
    "another exception": "t.exception = Raised(1, 2)",
}
FORGE = """
import os, torch
from torchmod.verify.trace import Raised, Trace
t = Trace(device='cpu')
{}
torch.save({{'value': t.plain()}}, '../answer'); os._exit(0)
"""
PROGRAMS |= {name: FORGE.format(line) for name, line in ODD.items()}
PROGRAMS["nothing odd"] = FORGE.format("")
PROGRAMS["claims a GPU"] = FORGE.format("t.device = 'cuda (NVIDIA H100)'")
ON_LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="this is Linux only")
SIGNALS_STAY_INSIDE = landlock.version() >= 6
if SIGNALS_STAY_INSIDE:  # else this process would be ended
    PROGRAMS["kills its parent"] = "import os; os.kill(os.getppid(), 9)"


@pytest.fixture(scope="module")
def traces() -> dict[str, Trace]:
    """All programs in one go: what one does, the next must survive."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MY_TOKEN", "secret")
        endless = {name: PROGRAMS[name] for name in ENDLESS}
        found = {}
        others = {name: source for name, source in PROGRAMS.items() if name not in ENDLESS}
        for programs, limits in ((endless, LIMITS), (others, PATIENT)):
            jobs = [Job(source, device=Device.CPU) for source in programs.values()]
            found |= dict(zip(programs, run_jobs(jobs, limits, workers=4), strict=True))
        return found


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


@ON_LINUX
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


@pytest.mark.skipif("changing other processes" in confine.missing(), reason="no system call filter for this machine")
@pytest.mark.parametrize(
    "name", ["changes its parent's limits", "slows its parent down", "slows everybody down", "moves its parent"]
)
def test_changing_other_processes_is_refused(traces: dict[str, Trace], name: str) -> None:
    assert str(traces[name].exception) == "PermissionError: [Errno 1] Operation not permitted (line 1)"


@ON_LINUX
def test_a_program_may_change_itself(traces: dict[str, Trace]) -> None:
    assert value(traces["changes itself"]) == 1


@pytest.mark.skipif(not SIGNALS_STAY_INSIDE, reason="this kernel's Landlock does not keep signals inside")
def test_signals_to_other_processes_are_refused(traces: dict[str, Trace]) -> None:
    assert str(traces["kills its parent"].exception).startswith("PermissionError")


def test_binary_output_is_kept_as_text(traces: dict[str, Trace]) -> None:
    assert traces["prints binary"].output.text == "\\xff\x00\x1b[2J"


def test_a_program_that_lowers_the_limit_of_recursion_is_looked_at_all_the_same(traces: dict[str, Trace]) -> None:
    assert traces["has little room"].values["x"]["length"] == 1


def test_the_limit_of_recursion_is_not_that_of_this_process() -> None:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)  # so deep that the end of it would take many seconds
    try:
        (trace,) = run_jobs([Job(PROGRAMS["recurses"], device=Device.CPU)], LIMITS)
    finally:
        sys.setrecursionlimit(before)
    assert str(trace.exception) == "RecursionError: maximum recursion depth exceeded (line 1)"


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this system does not tell who waits")
def test_a_program_that_waits_for_others_is_given_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    limits, job = Limits(seconds=0.4), Job("import time; time.sleep(0.8); x = 1", device=Device.CPU)
    assert run_jobs([job], limits)[0].status is Status.TIMEOUT
    monkeypatch.setattr("torchmod.verify.zygote.waited", lambda process: 2.0)
    assert run_jobs([job], limits)[0].status is Status.RAN


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


@pytest.mark.parametrize("name", ODD)
def test_a_forged_trace_that_holds_odd_things_is_a_bad_trace(traces: dict[str, Trace], name: str) -> None:
    assert traces[name].status is Status.BAD_TRACE
    assert traces[name].reason.startswith("what it wrote is no trace: ")


def test_a_trace_is_read_as_it_is(traces: dict[str, Trace]) -> None:
    assert traces["nothing odd"].status is Status.RAN


@pytest.mark.skipif(real_cuda(), reason="there is a GPU here")
def test_a_trace_that_claims_a_gpu_is_a_bad_trace_where_there_is_none(traces: dict[str, Trace]) -> None:
    assert traces["claims a GPU"].status is Status.BAD_TRACE


def test_what_a_program_puts_in_the_place_of_its_errors_is_not_waited_for(traces: dict[str, Trace]) -> None:
    assert traces["puts a pipe there"].reason == "it ended its own process, with status 4"


@ON_LINUX
def test_nothing_is_left_in_shared_memory(traces: dict[str, Trace]) -> None:
    assert value(traces["leaves shared memory"]) == 1
    assert not Path(f"/dev/shm/torch_1_{OUTSIDE}").exists()


def test_secrets_are_not_in_the_environment(traces: dict[str, Trace]) -> None:
    assert traces["reads secrets"].values["x"]["length"] == 0


def test_what_emulates_old_torch_is_imported_before_the_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torchmod.verify.legacy", raising=False)
    assert run_jobs([Job("x = 1", device=Device.CPU, legacy="1.1")])[0].status is Status.RAN
    assert "torchmod.verify.legacy" in sys.modules


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a process' address space is known through /proc")
def test_what_this_process_has_reserved_is_not_taken_from_its_children() -> None:
    with mmap.mmap(-1, 3 << 30, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ):
        (trace,) = run_jobs([Job("x = bytearray(100 << 20)[:1]", device=Device.CPU)], LIMITS)
    assert (trace.status, trace.exception) == (Status.RAN, None)


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


@ON_LINUX
@pytest.mark.parametrize(
    "program",
    [
        "for name in 'abc': os.write(os.memfd_create(name), bytes(80 << 20))\ntime.sleep(60)",
        "os.fork(); m = mmap.mmap(-1, 150 << 20)\nfor i in range(0, len(m), 4096): m[i] = 1\ntime.sleep(60)",
    ],
    ids=["files", "mapped"],
)
def test_shared_memory_counts_as_memory(program: str) -> None:
    limits = Limits(memory=200 << 20, file_size=100 << 20)
    (trace,) = run_jobs([Job(f"import mmap, os, time\n{program}", device=Device.CPU)], limits)
    assert trace.reason == "stopped: it used more than 200 MiB of memory"


@ON_LINUX
def test_shared_memory_that_several_processes_map_counts_once() -> None:
    program = """
import mmap, os, time
m = mmap.mmap(-1, 90 << 20)
for i in range(0, len(m), 4096): m[i] = 1
for _ in range(3):
    if os.fork() == 0:
        sum(m[i] for i in range(0, len(m), 4096)); time.sleep(0.5); os._exit(0)
while True:
    try: os.wait()
    except ChildProcessError: break
x = 1
"""
    (trace,) = run_jobs([Job(program, device=Device.CPU)], Limits(memory=200 << 20))
    assert trace.status is Status.RAN, trace.reason


def test_where_shared_memory_is_common_only_what_ended_processes_of_torch_made_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_memory, "FOLDER", str(tmp_path))
    monkeypatch.setattr(shared_memory, "can_be_private", lambda: False)
    ended = 1 << 30  # larger than any number of a process
    since = time.time() - 60
    for name in (f"torch_{ended}_1", f"torch_{ended}_old", f"torch_{os.getpid()}_1", f"other_{ended}_1"):
        (tmp_path / name).touch()
    os.utime(tmp_path / f"torch_{ended}_old", (since - 60, since - 60))
    shared_memory.remove_left(since)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"torch_{ended}_old",
        f"torch_{os.getpid()}_1",
        f"other_{ended}_1",
    }


def nest(folder: str, levels: int) -> None:
    here = os.getcwd()
    os.chdir(folder)
    for _ in range(levels):
        os.mkdir("d")
        Path("file").touch()
        os.chdir("d")
    os.chdir(here)


def test_folders_nested_deeper_than_recursion_and_paths_go_are_removed(tmp_path: Path) -> None:
    folder = scratch.make()
    nest(folder, sys.getrecursionlimit() + 50)
    kept = tmp_path / "kept"
    kept.touch()
    os.symlink(tmp_path, os.path.join(folder, "link"))
    os.chmod(os.path.join(folder, "d"), 0o500)
    scratch.remove(folder)
    assert not os.path.exists(folder)
    assert kept.exists()


def test_a_folder_that_a_program_locks_is_removed() -> None:
    folder = scratch.make()
    os.makedirs(os.path.join(folder, "work/d/e"))
    Path(folder, "work/d/e/file").touch()
    for below in ("work/d/e", "work/d", "work", "."):
        os.chmod(os.path.join(folder, below), 0)
    scratch.remove(folder)
    assert not os.path.exists(folder)


@pytest.mark.parametrize("workers", [-1, 0])
def test_an_odd_number_of_workers_does_not_hang(workers: int) -> None:
    assert [one.value for one in run_functions([partial(double, 2)], workers=workers)] == [4]


def test_a_child_that_cannot_be_started_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(zygote.child, "fork", refuse)
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    with pytest.raises(BlockingIOError):
        run_function(fail)
    assert list(tmp_path.iterdir()) == []
