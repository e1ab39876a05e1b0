"""Writing what came out: whole files or nothing, several files of one fix together, mode and hard links kept."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

from torchmod.model import Outcome, Status


def write_all(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Write every changed file. One that cannot be written becomes FAILED, and so do those that share a fix with it."""
    done = list(outcomes)
    for group in _groups(outcomes):
        problem = _write_together([done[index] for index in group])
        if problem:
            for index in group:
                others = "" if len(group) == 1 else " (a fix over several files was taken back)"
                done[index] = _failed(done[index], problem + others)
    return done


def _failed(outcome: Outcome, reason: str) -> Outcome:
    findings = tuple(replace(finding, fixed=False) for finding in outcome.findings)
    return replace(outcome, status=Status.FAILED, reason=reason, findings=findings, new=None, edits=())


def _groups(outcomes: Sequence[Outcome]) -> Iterator[list[int]]:
    """The indices of changed files, those linked by fixes over several files together."""
    group_of: dict[int, list[int]] = {}
    groups: list[list[int]] = []
    for index, outcome in enumerate(outcomes):
        if outcome.new is None:
            continue
        mine = [index]
        for number in outcome.transactions:
            other = group_of.get(number)
            if other is not None and other is not mine:
                mine = other + mine
                groups.remove(other)
        groups.append(mine)
        for member in mine:
            group_of.update(dict.fromkeys(outcomes[member].transactions, mine))
    yield from groups


def _write_together(group: Sequence[Outcome]) -> str:
    """Write some files; the reason when it could not be done, and then none of them is changed."""
    ready: list[tuple[Outcome, str]] = []
    try:
        for outcome in group:
            ready.append((outcome, _prepare(outcome)))  # noqa: PERF401 (on an error we need what was ready)
    except OSError as error:
        _discard(ready)
        return f"{group[len(ready)].path} cannot be written: {error.strerror or error}"
    written: list[Outcome] = []
    with _uninterrupted():
        try:
            for outcome, temporary in ready:
                _put_in_place(outcome, temporary)
                written.append(outcome)
        except OSError as error:
            _discard(ready)
            for outcome in written:
                _overwrite(outcome.path, outcome.old or b"")
            return f"{group[len(written)].path} cannot be written: {error.strerror or error}"
    return ""


def _prepare(outcome: Outcome) -> str:
    """The new content in a file beside the old one, on the disk; so a full disk is found before anything changes."""
    if _read(outcome.path) != outcome.old:
        raise OSError("it was changed while torchmod was running")
    if not os.access(outcome.path, os.W_OK):
        raise PermissionError(None, "no permission to write it")
    folder = os.path.dirname(os.path.abspath(outcome.path))
    handle, temporary = tempfile.mkstemp(prefix=".torchmod-", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(outcome.new or b"")
            file.flush()
            os.fsync(file.fileno())
        shutil.copystat(outcome.path, temporary)
        os.utime(temporary)
        _copy_owner(outcome.path, temporary)
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def _copy_owner(path: str, temporary: str) -> None:
    if hasattr(os, "chown"):
        old, new = os.stat(path), os.stat(temporary)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            os.chown(temporary, old.st_uid, old.st_gid)


def _put_in_place(outcome: Outcome, temporary: str) -> None:
    if os.stat(outcome.path).st_nlink == 1:
        os.replace(temporary, outcome.path)
        return
    try:  # another name leads to the same file: it must stay that file
        _overwrite(outcome.path, outcome.new or b"")
    except OSError:
        _overwrite(outcome.path, outcome.old or b"")
        raise
    os.unlink(temporary)


def _overwrite(path: str, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.write(data)
        file.truncate()


def _discard(ready: Sequence[tuple[Outcome, str]]) -> None:
    for _, temporary in ready:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until the files of one fix are all in place."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def write_file(path: str, data: bytes) -> None:
    """Write a report, whole or not at all; raises OSError."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(prefix=".torchmod-", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o666 & ~_umask()
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
