"""Landlock through ctypes: Linux lets a process give up the right to write anywhere but in some folders."""

from __future__ import annotations

import ctypes
import glob
import os
import sys

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_NO_NEW_PRIVILEGES = 38
_WRITE_FILE, _REFER, _TRUNCATE = 1 << 1, 1 << 13, 1 << 14
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
_SCOPE_SIGNALS = 1 << 1
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/shm", "/dev/nvidia*")
"""What programs write to that leaves nothing behind: shared memory of loader workers, a GPU."""


def version() -> int:
    """The kernel's Landlock version; 0 where there is none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, _call(_CREATE, None, 0, 1))


def forbid_writing_outside(folder: str) -> bool:
    """From now on this process and its children write below ``folder`` only; False where that cannot be had.

    Where the kernel can, they cannot send signals to other processes either. Reading stays free; so do changes of
    modes and times, which Landlock does not know.
    """
    has = version()
    if not has:
        return False
    rights = _WRITE_FILE | _MAKE_AND_REMOVE | (_REFER if has >= 2 else 0) | (_TRUNCATE if has >= 3 else 0)
    attributes = (ctypes.c_uint64 * 3)(rights, 0, _SCOPE_SIGNALS)
    size = 24 if has >= 6 else 16 if has >= 4 else 8
    ruleset = _call(_CREATE, ctypes.byref(attributes), size, 0)
    if ruleset < 0:
        return False
    try:
        for path in [folder, *(path for pattern in _DEVICES for path in glob.glob(pattern))]:
            is_file = not os.path.isdir(path)
            _allow(ruleset, path, rights & (_WRITE_FILE | _TRUNCATE) if is_file else rights)
        ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        return _call(_RESTRICT, ruleset, 0) == 0
    finally:
        os.close(ruleset)


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("rights", ctypes.c_uint64), ("folder", ctypes.c_int32))


def _allow(ruleset: int, path: str, rights: int) -> None:
    opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        _call(_ADD, ruleset, 1, ctypes.byref(_Beneath(rights, opened)), 0)
    finally:
        os.close(opened)


def _call(number: int, *arguments: object) -> int:
    result: int = ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments)
    return result
