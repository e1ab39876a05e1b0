"""Whole files or nothing; several files of one fix together; what belongs to a file stays with it."""

import errno
import os
import signal
from pathlib import Path

import pytest

from torchmod import writing
from torchmod.model import Applicability, Edit, Finding, Outcome, Span, Status
from torchmod.writing import uninterrupted, write_all, write_file

OLD, NEW = b"old\n", b"new and longer\n"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def changed(name: str, *transactions: int, old: bytes = OLD) -> Outcome:
    """An outcome for a file, which is written as it was read."""
    if not Path(name).exists():
        Path(name).write_bytes(old)
    finding = Finding("house-rule", Applicability.SAFE, "rename it", Span(0, 3), path=name, fixed=True)
    edits = (Edit(0, 3, "new and longer"),)
    return Outcome(name, findings=(finding,), old=old, new=NEW, edits=edits, transactions=transactions)


def texts() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(Path.cwd().iterdir())}


def problems(outcomes: list[Outcome]) -> dict[str, str]:
    return {outcome.path: outcome.reason for outcome in outcomes if outcome.status is Status.FAILED}


def failing_write(monkeypatch: pytest.MonkeyPatch, name: str, error: OSError) -> None:
    """Let the write to one file fail, as a full disk would."""
    prepare = writing._prepare

    def broken(outcome: Outcome) -> str:
        if outcome.path == name:
            raise error
        return prepare(outcome)

    monkeypatch.setattr(writing, "_prepare", broken)


def test_changed_files_are_written_and_the_others_are_not_touched() -> None:
    Path("same.py").write_bytes(OLD)
    before = os.stat("same.py").st_mtime_ns
    outcomes = [Outcome("same.py"), changed("a.py"), Outcome("gone.py", Status.SKIPPED, "why")]
    assert write_all(outcomes) == outcomes
    assert texts() == {"a.py": NEW, "same.py": OLD}
    assert os.stat("same.py").st_mtime_ns == before


def test_mode_and_owner_stay_and_the_time_is_new() -> None:
    outcome = changed("a.py")
    os.chmod("a.py", 0o751)
    os.utime("a.py", (1_000_000_000, 1_000_000_000))
    before = os.stat("a.py")
    write_all([outcome])
    after = os.stat("a.py")
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert after.st_mtime > 1_000_000_000


def test_hard_links_stay_links() -> None:
    outcome = changed("a.py")
    os.link("a.py", "b.py")
    write_all([outcome])
    assert os.path.samefile("a.py", "b.py")
    assert texts() == {"a.py": NEW, "b.py": NEW}


def test_a_file_is_never_seen_half_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands at the path is the old file up to the moment when the new one, whole, takes its place."""
    seen = []
    replace = os.replace

    def looking(source: str, target: str) -> None:
        seen.append((Path(target).read_bytes(), Path(source).read_bytes()))
        replace(source, target)

    monkeypatch.setattr(os, "replace", looking)
    write_all([changed("a.py")])
    assert seen == [(OLD, NEW)]
    assert texts() == {"a.py": NEW}


def test_a_file_of_somebody_else_that_we_may_write_stays_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root can make a file somebody else's")

    def no(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    outcome = changed("a.py")
    os.chown("a.py", 12345, 12346)
    monkeypatch.setattr(os, "chown", no)  # as for anybody but root
    assert problems(write_all([outcome])) == {}
    assert texts() == {"a.py": NEW}
    assert (os.stat("a.py").st_uid, os.stat("a.py").st_gid) == (12345, 12346)


def test_a_file_that_was_changed_meanwhile_is_not_overwritten() -> None:
    outcomes = [changed("a.py"), changed("b.py"), changed("c.py")]
    Path("a.py").write_bytes(b"mine")
    Path("c.py").unlink()
    done = write_all(outcomes)
    assert problems(done) == {
        "a.py": "cannot be written: it was changed while torchmod was running",
        "c.py": "cannot be written: No such file or directory",
    }
    assert texts() == {"a.py": b"mine", "b.py": NEW}
    assert [f.fixed for outcome in done for f in outcome.findings] == [False, True, False]
    assert (done[0].new, done[0].edits) == (None, ())


def test_a_full_disk_loses_nothing_and_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    failing_write(monkeypatch, "b.py", OSError(errno.ENOSPC, "No space left on device"))
    done = write_all([changed("a.py"), changed("b.py"), changed("c.py")])
    assert problems(done) == {"b.py": "cannot be written: No space left on device"}
    assert texts() == {"a.py": NEW, "b.py": OLD, "c.py": NEW}


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_nothing_is_left_behind_when_writing_fails(monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, function, full)
    done = write_all([changed("a.py"), changed("b.py", 1), changed("c.py", 1)])
    assert set(problems(done)) == {"a.py", "b.py", "c.py"}
    assert texts() == {"a.py": OLD, "b.py": OLD, "c.py": OLD}


def test_a_hard_link_on_a_full_disk_gets_its_old_text_back(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = changed("a.py")
    os.link("a.py", "b.py")
    overwrite = writing._overwrite

    def full(path: str, data: bytes) -> None:
        overwrite(path, data[:5])
        if data == NEW:
            raise OSError(errno.ENOSPC, "No space left on device")
        overwrite(path, data)

    monkeypatch.setattr(writing, "_overwrite", full)
    assert problems(write_all([outcome])) == {"a.py": "cannot be written: No space left on device"}
    assert texts() == {"a.py": OLD, "b.py": OLD}


# fixes over several files


def test_files_of_one_fix_are_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    failing_write(monkeypatch, "c.py", OSError(errno.EACCES, "Permission denied"))
    done = write_all([changed("a.py", 1), changed("b.py", 2), changed("c.py", 2), changed("d.py")])
    assert problems(done) == {
        "b.py": "left as it was: a fix goes over c.py too, which cannot be written: Permission denied",
        "c.py": "cannot be written: Permission denied",
    }
    assert texts() == {"a.py": NEW, "b.py": OLD, "c.py": OLD, "d.py": NEW}


def test_fixes_that_share_a_file_stand_and_fall_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 links a and d, 2 links b and c, 3 links c and d: so a, b, c and d are one."""
    linked = [changed("a.py", 1), changed("b.py", 2), changed("c.py", 2, 3), changed("d.py", 1, 3)]
    failing_write(monkeypatch, "b.py", OSError(errno.EACCES, "Permission denied"))
    assert set(problems(write_all([*linked, changed("e.py", 4)]))) == {"a.py", "b.py", "c.py", "d.py"}
    assert texts() == {"a.py": OLD, "b.py": OLD, "c.py": OLD, "d.py": OLD, "e.py": NEW}


def test_files_already_in_place_are_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [changed("a.py", 1), changed("b.py", 1), changed("c.py", 1)]
    replace = os.replace

    def breaking(source: str, target: str) -> None:
        if target == "c.py":
            raise OSError(errno.EIO, "Input/output error")
        replace(source, target)

    monkeypatch.setattr(os, "replace", breaking)
    assert problems(write_all(outcomes))["c.py"] == "cannot be written: Input/output error"
    assert texts() == {"a.py": OLD, "b.py": OLD, "c.py": OLD}


def test_what_cannot_be_taken_back_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [changed("a.py", 1), changed("b.py", 1)]
    replace = os.replace

    def breaking(source: str, target: str) -> None:
        if target == "b.py":
            raise OSError(errno.EIO, "Input/output error")
        replace(source, target)

    def no(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "replace", breaking)
    monkeypatch.setattr(writing, "_overwrite", no)
    done = problems(write_all(outcomes))
    assert done["b.py"] == "cannot be written: Input/output error; the change of a.py could not be taken back"


# interruptions


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_the_files_of_a_fix_are_in_place(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    came: list[int] = []
    before = signal.signal(number, lambda number, _: came.append(number))
    replace = os.replace

    def interrupted(source: str, target: str) -> None:
        if target == "a.py":
            signal.raise_signal(number)
            assert came == []
        replace(source, target)

    try:
        monkeypatch.setattr(os, "replace", interrupted)
        write_all([changed("a.py", 1), changed("b.py", 1)])
        assert came == [number]
    finally:
        signal.signal(number, before)
    assert texts() == {"a.py": NEW, "b.py": NEW}


def test_control_c_ends_the_writing_after_the_fix_that_is_being_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(outcome: Outcome) -> str:
        signal.raise_signal(signal.SIGINT)
        return prepare(outcome)

    prepare = writing._prepare
    monkeypatch.setattr(writing, "_prepare", interrupted)
    outcomes = [changed("a.py"), changed("b.py")]
    with pytest.raises(KeyboardInterrupt):
        write_all(outcomes)
    assert texts() == {"a.py": NEW, "b.py": OLD}


def test_the_handlers_of_before_are_back_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with uninterrupted():
        during = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    assert not set(during) & set(before)
    with pytest.raises(ZeroDivisionError), uninterrupted():
        raise ZeroDivisionError
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_other_threads_leave_signals_alone() -> None:
    import threading

    failures: list[BaseException] = []

    def work() -> None:
        try:
            write_all([outcome])
        except BaseException as error:
            failures.append(error)

    outcome = changed("a.py")
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert failures == []
    assert texts() == {"a.py": NEW}


# reports


def test_a_report_is_written_whole_with_a_usual_mode_or_that_of_the_file_there() -> None:
    mask = os.umask(0o027)
    try:
        write_file("new.txt", b"one")
    finally:
        os.umask(mask)
    Path("old.txt").write_bytes(b"longer than that")
    os.chmod("old.txt", 0o604)
    write_file("old.txt", b"two")
    assert texts() == {"new.txt": b"one", "old.txt": b"two"}
    assert oct(os.stat("new.txt").st_mode & 0o777) == "0o640"
    assert oct(os.stat("old.txt").st_mode & 0o777) == "0o604"


def test_a_report_goes_through_a_link_and_into_a_pipe() -> None:
    Path("there").mkdir()
    os.symlink("there/report.txt", "link.txt")
    write_file("link.txt", b"one")
    assert os.path.islink("link.txt")
    assert Path("there/report.txt").read_bytes() == b"one"
    if not hasattr(os, "mkfifo"):
        pytest.skip("there are no pipes with a name here")
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDWR | os.O_NONBLOCK)
    write_file("pipe", b"two")
    assert os.read(reader, 10) == b"two"
    os.close(reader)


def test_a_report_that_cannot_be_written_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    Path("report.txt").write_bytes(b"old")
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_file("report.txt", b"new")
    assert texts() == {"report.txt": b"old"}
    with pytest.raises(OSError, match="No such file"):
        write_file("nowhere/report.txt", b"new")
    with pytest.raises(IsADirectoryError):
        write_file(".", b"new")
