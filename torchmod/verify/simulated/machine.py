"""The machine that is simulated: its devices, the current one of each thread, their memory and random streams."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import torch

Index = int | None
"""A device: the number of a simulated CUDA device, or None for the CPU."""

NAME = "simulated CUDA device"
MEMORY = 16 << 30


class Local(threading.local):
    """What each thread has of its own."""

    current = 0
    """The device that a bare ``"cuda"`` means."""
    in_call = False
    """Whether a function of torch is being executed, so that the next two are known."""
    ambient: Index = None
    """The device that this function works for: what it makes inside belongs there."""
    untracked = False
    """Whether operators are left alone."""
    device_given = False
    """Whether the call of this function names a device."""
    in_engine = False
    """Whether the engine of autograd is running operators, rather than a function that it has called back."""

    def __init__(self) -> None:
        self.streams: dict[int, int] = {}
        """The number of the current stream of each device, unless it is the default stream."""


class Machine:
    """The state of the simulation; a process has one."""

    def __init__(self) -> None:
        self.installed = 0
        self.local = Local()
        self.default: Index = None
        """Where tensors are made when nothing is said, as ``set_default_tensor_type`` left it."""
        self.allocated: defaultdict[int, int] = defaultdict(int)
        self.peak: defaultdict[int, int] = defaultdict(int)
        self.total: defaultdict[int, int] = defaultdict(int)
        """All bytes that were ever allocated on a device."""
        self.generators: tuple[torch._C.Generator, ...] = ()
        self._used_in: int | None = None
        self._count: int | None = None

    @property
    def count(self) -> int:
        """How many devices a program sees: as with CUDA, the environment is asked until the first use."""
        return visible(self.installed) if self._count is None else self._count

    def note_first_use(self) -> None:
        self._count = self.count
        self._used_in = os.getpid()

    def is_forked(self) -> bool:
        """Whether this process was forked from one that had used CUDA: there CUDA cannot be used again."""
        return self._used_in not in (None, os.getpid())

    def allocate(self, index: int, size: int) -> None:
        self.total[index] += size
        self.allocated[index] += size
        self.peak[index] = max(self.peak[index], self.allocated[index])

    def free(self, index: int, size: int) -> None:
        self.allocated[index] -= size

    @contextmanager
    def untracked(self) -> Iterator[None]:
        """Leave the operators within alone: no check, no tag."""
        before, self.local.untracked = self.local.untracked, True
        try:
            yield
        finally:
            self.local.untracked = before

    @contextmanager
    def drawing_on(self, index: int) -> Iterator[None]:
        """Let random operators, which know the CPU's stream only, draw from that of a device."""
        host, stream = torch.default_generator, self.generators[index]
        saved = host.get_state()
        host.set_state(stream.get_state())
        try:
            yield
        finally:
            stream.set_state(host.get_state())
            host.set_state(saved)


def visible(installed: int) -> int:
    """How many of the installed devices ``CUDA_VISIBLE_DEVICES`` shows: it is read up to the first wrong entry."""
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return installed
    seen: list[int] = []
    for word in wanted.split(","):
        if not word.strip().isdigit() or int(word) >= installed or int(word) in seen:
            break
        seen.append(int(word))
    return len(seen)


machine = Machine()
