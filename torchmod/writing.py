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
        for index in group if problem else ():
            done[index] = _failed(done[index], *problem)
    return done


def _failed(outcome: Outcome, culprit: str, reason: str) -> Outcome:
    why = f"cannot be written: {reason}"
    if outcome.path != culprit:
        why = f"left as it was: a fix goes over {culprit} too, which {why}"
    findings = tuple(replace(finding, fixed=False) for finding in outcome.findings)
    return replace(outcome, status=Status.FAILED, reason=why, findings=findings, new=None, edits=())


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


def _write_together(group: Sequence[Outcome]) -> tuple[str, str] | tuple[()]:
    """Write some files, all or none; when it could not be done, the path that could not be written and the reason."""
    ready: list[tuple[Outcome, str]] = []
    written: list[Outcome] = []
    with uninterrupted():
        try:
            for outcome in group:
                ready.append((outcome, _prepare(outcome)))  # noqa: PERF401 (on an error we need what was ready)
            for outcome, temporary in ready:
                _put_in_place(outcome, temporary)
                written.append(outcome)
        except OSError as error:
            culprit = group[len(ready) if len(ready) < len(group) else len(written)]
            _discard(ready)  # first: on a full disk this makes room
            return culprit.path, f"{error.strerror or error}{_take_back(written)}"
        finally:
            _discard(ready)
    return ()


def _prepare(outcome: Outcome) -> str:
    """A file beside the old one that holds the new text, with the old one's mode and owner; raises OSError."""
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
        if hasattr(os, "chown"):
            old = os.stat(outcome.path)
            with contextlib.suppress(PermissionError):
                os.chown(temporary, old.st_uid, old.st_gid)
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def _put_in_place(outcome: Outcome, temporary: str) -> None:
    old, new = os.stat(outcome.path), os.stat(temporary)
    if old.st_nlink == 1 and (old.st_uid, old.st_gid) == (new.st_uid, new.st_gid):
        os.replace(temporary, outcome.path)
        return
    try:  # another name leads to the same file, or it is somebody else's: it must stay that file
        _overwrite(outcome.path, outcome.new or b"")
    except OSError:
        _overwrite(outcome.path, outcome.old or b"")
        raise


def _take_back(written: Sequence[Outcome]) -> str:
    """Give files their old text again; what to add to the reason where even that fails."""
    lost = []
    for outcome in written:
        try:
            _overwrite(outcome.path, outcome.old or b"")
        except OSError:
            lost.append(outcome.path)
    return f"; the change of {', '.join(lost)} could not be taken back" if lost else ""


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
def uninterrupted() -> Iterator[None]:
    """Ctrl-C and a request to end wait until this is over."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


def write_file(path: str, data: bytes) -> None:
    """Write a report, whole or not at all; raises OSError."""
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe: there is nothing to put in its place
        with open(path, "wb") as file:
            file.write(data)
        return
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o666 & ~_umask()
    handle, temporary = tempfile.mkstemp(prefix=".torchmod-", suffix=".tmp", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
