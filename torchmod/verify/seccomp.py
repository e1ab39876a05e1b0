"""A filter on system calls through ctypes: no network, and no way out of the process group that is killed at the end.

Local (AF_UNIX) sockets stay: loader workers need them.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys
from typing import NamedTuple

_NO_NEW_PRIVILEGES, _SET_SECCOMP, _GET_SECCOMP, _FILTER_MODE = 38, 22, 21, 2
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_AF_UNIX, _AF_NETLINK = 1, 16


class _Numbers(NamedTuple):
    """An architecture's mark, and its numbers of the system calls in question."""

    mark: int
    socket: int
    set_session: int
    set_group: int
    ring: int


_MACHINES = {
    "x86_64": _Numbers(0xC000003E, 41, 112, 109, 425),
    "aarch64": _Numbers(0xC00000B7, 198, 157, 154, 425),
}


def works() -> bool:
    """Whether this machine has such filters and we know its numbers."""
    if not sys.platform.startswith("linux") or platform.machine() not in _MACHINES:
        return False
    return bool(ctypes.CDLL(None).prctl(_GET_SECCOMP, 0, 0, 0, 0) >= 0)


def forbid_network_and_new_sessions() -> bool:
    """From now on, in this process and its children; False where that cannot be had."""
    if not works():
        return False
    code = _program(_MACHINES[platform.machine()])
    buffer = ctypes.create_string_buffer(code)
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    library = ctypes.CDLL(None)
    library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    return bool(library.prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0) == 0)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def _program(numbers: _Numbers) -> bytes:
    """The filter: each step is an operation, how many steps to skip if so or if not, and a value."""
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 0, 8, numbers.mark),  # another architecture's calls: allow
        (_LOAD, 0, 0, _NUMBER_AT),
        (_EQUAL, 7, 0, numbers.set_session),
        (_EQUAL, 6, 0, numbers.set_group),
        (_EQUAL, 5, 0, numbers.ring),
        (_EQUAL, 0, 3, numbers.socket),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        (_EQUAL, 1, 0, _AF_UNIX),
        (_EQUAL, 0, 1, _AF_NETLINK),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
