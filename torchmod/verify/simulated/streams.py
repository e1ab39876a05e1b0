"""Streams and events: there is nothing to wait for, since every operator has ended when it returns."""

from __future__ import annotations

from typing import Any

import torch

from torchmod.verify.simulated.machine import machine
from torchmod.verify.simulated.tags import index_for


class Stream:
    """A stream of a device."""

    def __init__(self, device: Any = None, priority: int = 0, **ids: Any) -> None:
        index = None if device is None else index_for(device)
        self.device_index = machine.local.current if index is None else index
        self.priority = priority
        self.stream_id = self.cuda_stream = 0

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", self.device_index)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def synchronize(self) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        pass

    def wait_event(self, event: Any) -> None:
        pass

    def record_event(self, event: Event | None = None) -> Event:
        return event or Event()


class Event:
    """A moment in a stream."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        pass

    def record(self, stream: Any = None) -> None:
        pass

    def wait(self, stream: Any = None) -> None:
        pass

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Event) -> float:
        return 0.0

    def synchronize(self) -> None:
        pass
