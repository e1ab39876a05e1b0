"""A filter on system calls through ctypes: no network, no other process group, no change of other processes.

The group is killed at the end, so nothing may leave it; limits, priorities and processors of others stay theirs.
Local (AF_UNIX) sockets stay: loader workers need them.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from typing import NamedTuple

_NO_NEW_PRIVILEGES, _SET_SECCOMP, _GET_SECCOMP, _FILTER_MODE = 38, 22, 21, 2
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_AF_UNIX, _AF_NETLINK = 1, 16
_ONE_PROCESS, _ONE_GROUP = 0, 1
_Step = tuple[int, int, int, int]
"""An operation, how many steps to skip if so and if not, and a value."""


class _Numbers(NamedTuple):
    """An architecture's mark, and its numbers of the system calls in question."""

    mark: int
    socket: int
    set_session: int
    set_group: int
    ring: int
    set_priority: int
    of_a_process: tuple[int, ...]
    """prlimit64 and the sched_set… calls: what changes the process that their first argument names."""


_MACHINES = {
    "x86_64": _Numbers(0xC000003E, 41, 112, 109, 425, 141, (302, 203, 144, 142, 314)),
    "aarch64": _Numbers(0xC00000B7, 198, 157, 154, 425, 140, (261, 122, 119, 118, 274)),
}


def works() -> bool:
    """Whether this machine has such filters and we know its numbers."""
    if not sys.platform.startswith("linux") or platform.machine() not in _MACHINES:
        return False
    return bool(ctypes.CDLL(None).prctl(_GET_SECCOMP, 0, 0, 0, 0) >= 0)


def keep_to_itself() -> bool:
    """From now on, for this process and its children; False where that cannot be had."""
    if not works():
        return False
    code = _program(_MACHINES[platform.machine()], os.getpid())
    buffer = ctypes.create_string_buffer(code)
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    library = ctypes.CDLL(None)
    library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    return bool(library.prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0) == 0)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def _program(numbers: _Numbers, process: int) -> bytes:
    """The filter. Another architecture's calls are allowed."""
    itself = (0, process)
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, numbers.mark),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _NUMBER_AT),
        *_refuse(numbers.set_session),
        *_refuse(numbers.set_group),
        *_refuse(numbers.ring),
        *_refuse_unless(numbers.socket, (_AF_UNIX, _AF_NETLINK)),
        *_refuse_unless(numbers.set_priority, (_ONE_PROCESS, _ONE_GROUP), itself),
        *(step for number in numbers.of_a_process for step in _refuse_unless(number, itself)),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _refuse(number: int) -> list[_Step]:
    return [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]


def _refuse_unless(number: int, *arguments: tuple[int, ...]) -> list[_Step]:
    """Refuse a call, unless each of its first arguments is one of some values."""
    block: list[_Step] = []
    for place, values in enumerate(arguments):
        block.append((_LOAD, 0, 0, _ARGUMENTS_AT + 8 * place))
        block += [(_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
        block.append((_RETURN, 0, 0, _REFUSE))
    block.append((_RETURN, 0, 0, _ALLOW))
    return [(_EQUAL, 0, len(block), number), *block]
