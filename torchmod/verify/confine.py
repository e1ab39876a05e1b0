"""What a child process may do: limits on time, memory and files, no secrets, no writing outside, no network.

Everything here is best effort with the standard library: what the system lacks is left out, and ``missing`` says what.
It guards against accidents of programs that are run on purpose; it is no prison for hostile ones.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from torchmod.verify import landlock, seccomp, shared_memory

_SECRET = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "KEY")
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """What one child and its descendants may use."""

    seconds: float = 20.0
    memory: int = 4096 * _MIB
    """Bytes of address space a process, beyond what it starts with, and of memory all of them together."""
    file_size: int = 256 * _MIB
    open_files: int = 256
    processes: int = 32


def enter(scratch: str, limits: Limits, *, address_space: bool = True) -> None:
    """Confine this process, for good. ``address_space`` is False where CUDA reserves huge ranges of it."""
    _clean_environment(scratch)
    _set_limits(limits, address_space=address_space)
    shared_memory.make_private(limits.memory)
    landlock.forbid_writing_outside(scratch)
    seccomp.keep_to_itself()


def missing() -> list[str]:
    """What is not prevented on this machine."""
    lacks = []
    if not landlock.version():
        lacks.append("writing outside the scratch folder")
    if not seccomp.works():
        lacks += ["use of the network", "changing other processes"]
    if not sys.platform.startswith("linux"):
        lacks.append("use of all memory and processes")
    return lacks


def _clean_environment(scratch: str) -> None:
    for name in list(os.environ):
        if any(word in name.upper() for word in _SECRET):
            del os.environ[name]
    home, temporary = (os.path.join(scratch, name) for name in ("home", "tmp"))
    for folder in (home, temporary):
        os.makedirs(folder, exist_ok=True)
    for name in ("HOME", "USERPROFILE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TORCH_HOME"):
        os.environ[name] = home
    for name in ("TMPDIR", "TEMP", "TMP"):
        os.environ[name] = temporary
    tempfile.tempdir = temporary


def _set_limits(limits: Limits, *, address_space: bool) -> None:
    if sys.platform == "win32":
        return
    import resource

    wanted = {
        resource.RLIMIT_CPU: math.ceil(time.process_time() + limits.seconds),
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.file_size,
        resource.RLIMIT_NOFILE: limits.open_files,
    }
    if address_space:
        wanted[resource.RLIMIT_AS] = _address_space() + limits.memory
    for kind, value in wanted.items():
        hard = resource.getrlimit(kind)[1]
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (most, most))


def _address_space() -> int:
    """Bytes that this process has inherited (Linux only): a large parent must not make a child fail."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process group uses at one moment."""

    processes: int
    memory: int


def usage(group: int) -> Usage:
    """The processes of a group and the memory that they did not get from this process by forking (Linux only)."""
    mine = _private_bytes("self")
    members = []
    for entry in _process_folders():
        try:
            after_name = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if len(after_name) > 2 and int(after_name[2]) == group:
            members.append(entry.name)
    memory = sum(max(0, _private_bytes(process) - mine) for process in members)
    return Usage(len(members), memory + shared_memory.used(members))


def waited(process: int) -> float:
    """Seconds that a process has waited for a processor that others had (Linux only)."""
    try:
        return int(Path("/proc", str(process), "schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _process_folders() -> list[Path]:
    try:
        return [Path("/proc", name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _private_bytes(process: str) -> int:
    try:
        resident, shared = Path("/proc", process, "statm").read_text().split()[1:3]
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
