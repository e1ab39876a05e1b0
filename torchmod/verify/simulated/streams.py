"""Streams and events: there is nothing to wait for, since every operator has ended when it returns."""

from __future__ import annotations

from itertools import count
from typing import Any

import torch

from torchmod.verify.simulated.machine import machine
from torchmod.verify.simulated.tags import index_for

DEVICE_TYPE = 1
"""CUDA's number among the types of devices."""
_numbers, _moments = count(1), count(1)


class Stream:
    """A stream of a device; number 0 is its default stream."""

    device_type = DEVICE_TYPE

    def __init__(
        self,
        device: Any = None,
        priority: int = 0,
        *,
        stream_id: int | None = None,
        device_index: int | None = None,
        device_type: int = DEVICE_TYPE,
    ) -> None:
        index = device_index if device is None else index_for(device)
        self.device_index = machine.local.current if index is None else index
        self.priority = priority
        self.stream_id = self.cuda_stream = next(_numbers) if stream_id is None else stream_id
        self._entered: list[Any] = []

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", self.device_index)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.device_index, self.stream_id) == (other.device_index, other.stream_id)

    def __hash__(self) -> int:
        return hash((self.device_index, self.stream_id))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"

    def __enter__(self) -> Stream:
        self._entered.append(torch.cuda.stream(self))  # type: ignore[arg-type]
        self._entered[-1].__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._entered.pop().__exit__(*error)

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
        event = event or Event()
        event.record(self)
        return event


class ExternalStream(Stream):
    """A stream that another library has made."""

    def __init__(self, stream_ptr: int, device: Any = None, **ids: Any) -> None:
        super().__init__(device, stream_id=stream_ptr)


class Event:
    """A moment in a stream. Two of them are as many milliseconds apart as there were recordings."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self.enable_timing = enable_timing
        self.moment: int | None = None

    def record(self, stream: Any = None) -> None:
        self.moment = next(_moments)

    def wait(self, stream: Any = None) -> None:
        pass

    def query(self) -> bool:
        return True

    def elapsed_time(self, end_event: Event) -> float:
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.moment is None or end_event.moment is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return float(end_event.moment - self.moment)

    def synchronize(self) -> None:
        pass
