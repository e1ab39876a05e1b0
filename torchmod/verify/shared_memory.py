"""Shared memory (/dev/shm on Linux): a place of its own for each run where that can be had, and how much of it is used.

Else what torch left there is removed afterwards: a killed program cannot do it itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

FOLDER = "/dev/shm"
_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_NO_SETUID, _NO_DEVICES, _RECURSIVE, _SLAVE = 2, 4, 1 << 14, 1 << 19
_BY_TORCH = re.compile(r"torch_(\d+)_")
"""torch's own names: with the number of the process that made the file."""
_WORTH_A_LOOK = 16 << 20
"""Bytes of mapped shared memory from which on it is counted exactly, which takes longer."""


@functools.cache
def can_be_private() -> bool:
    """Whether a process of ours may have a /dev/shm of its own: tried in one that ends at once."""
    if not sys.platform.startswith("linux") or not os.path.isdir(FOLDER):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "multi-threaded": the child calls nothing of torch
        process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    code = 1
    try:
        code = 0 if _mount(1 << 20) else 1
    finally:
        os._exit(code)


def make_private(most: int) -> bool:
    """Give this process and its children an empty /dev/shm of that many bytes, gone when they are."""
    return can_be_private() and _mount(most)


def _mount(most: int) -> bool:
    """As root, or as one who is root only in a user namespace of its own, where the system has these."""
    library = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if library.unshare(_NEW_MOUNTS):
        if library.unshare(_NEW_MOUNTS | _NEW_USER):
            return False
        try:
            for name, text in (
                ("setgroups", "deny"),
                ("uid_map", f"{user} {user} 1"),
                ("gid_map", f"{group} {group} 1"),
            ):
                Path("/proc/self", name).write_text(text, encoding="ascii")
        except OSError:
            return False
    if library.mount(None, b"/", None, ctypes.c_ulong(_RECURSIVE | _SLAVE), None):
        return False
    flags = ctypes.c_ulong(_NO_SETUID | _NO_DEVICES)
    return not library.mount(b"tmpfs", FOLDER.encode(), b"tmpfs", flags, f"size={most},mode=1777".encode())


def remove_left(since: float) -> None:
    """Remove what torch made in the common /dev/shm since then, for processes that have ended."""
    if can_be_private() or not os.path.isdir(FOLDER):
        return
    with contextlib.suppress(OSError), os.scandir(FOLDER) as found:
        for entry in found:
            made_by = _BY_TORCH.match(entry.name)
            if made_by is None or os.path.exists(f"/proc/{made_by[1]}"):
                continue
            with contextlib.suppress(OSError):
                state = entry.stat(follow_symlinks=False)
                if state.st_uid == os.getuid() and state.st_mtime >= since:
                    os.unlink(entry.path)


def used(processes: Sequence[str]) -> int:
    """Bytes of shared memory that some processes map or hold open. What is both counts once."""
    return max(sum(map(_mapped, processes)), _held(processes))


def _mapped(process: str) -> int:
    """The share of a process in what it maps."""
    rough = _entry(process, "status", "RssShmem")
    return rough if rough < _WORTH_A_LOOK else _entry(process, "smaps_rollup", "Pss_Shmem") or rough


def _entry(process: str, file: str, name: str) -> int:
    try:
        lines = Path("/proc", process, file).read_text(errors="replace").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:")), 0)


def _held(processes: Sequence[str]) -> int:
    """The size of all files in memory: those in a private /dev/shm, and those that are open."""
    whole = 0
    if can_be_private() and processes:
        with contextlib.suppress(OSError):
            private = f"/proc/{processes[0]}/root{FOLDER}"
            if os.stat(private).st_dev != os.stat(FOLDER).st_dev:  # else it has not got there yet
                state = os.statvfs(private)
                whole = (state.f_blocks - state.f_bfree) * state.f_frsize
    begins = ("/memfd:",) if can_be_private() else ("/memfd:", f"{FOLDER}/")
    files = {(state.st_dev, state.st_ino): state.st_blocks * 512 for state in _open_files(processes, begins)}
    return whole + sum(files.values())


def _open_files(processes: Sequence[str], begins: tuple[str, ...]) -> Iterator[os.stat_result]:
    for process in processes:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{process}/fd"):
                path = f"/proc/{process}/fd/{name}"
                with contextlib.suppress(OSError):
                    if os.readlink(path).startswith(begins):
                        yield os.stat(path)
