"""What a run is asked for, and what is known of it afterwards.

A trace crosses a process boundary as plain data (dictionaries, lists, strings, numbers, tensors), because the process
that wrote it ran code we do not trust: it is read with ``torch.load(weights_only=True)``.
"""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass, field, fields
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

Snapshot = dict[str, Any]
"""One observed value: its ``kind`` and what belongs to that kind, see `snapshot`."""


class Device(enum.StrEnum):
    """Where a program is to run."""

    AUTO = "auto"  # CUDA where there is a GPU, else the simulated device
    CUDA = "cuda"
    SIMULATED = "simulated"
    CPU = "cpu"  # no accelerator, also where there is one


class Status(enum.StrEnum):
    """How a child process ended."""

    RAN = "ran"
    RAISED = "raised"  # only of functions: an exception of a program is part of its trace
    TIMEOUT = "timeout"
    DIED = "died"
    BAD_TRACE = "bad trace"


@dataclass(frozen=True, slots=True)
class Job:
    """One program to run and watch."""

    source: str
    setup: str = ""
    """Code that runs first: the program gets all that it made, but not the modules that it imported."""
    watch: tuple[str, ...] = ()
    """The names to observe; all public ones that hold data when empty."""
    device: Device = Device.AUTO
    devices: int = 2
    """How many devices the simulation has."""
    legacy: str | None = None
    """The torch version whose meaning is emulated."""
    inputs_require_grad: bool = False
    """Whether the floating tensors that ``setup`` made require grad; their gradients are then observed."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a function ended in its own process."""

    status: Status
    value: Any = None
    """What it returned, when it ran: plain data."""
    reason: str = ""
    """One line: what was wrong, when it did not."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Raised:
    """The exception that a program ended with; ``line`` is its own line, if one of its lines was running."""

    type: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = f" (line {self.line})" if self.line else ""
        return f"{self.type}: {self.message}{where}" if self.message else f"{self.type}{where}"


@dataclass(frozen=True, slots=True)
class Output:
    """What was printed: its beginning, and the digest of all of it."""

    text: str = ""
    length: int = 0
    digest: str = ""


@dataclass(slots=True)
class Trace:
    """Everything that was observed of one run."""

    status: Status = Status.RAN
    reason: str = ""
    """One line: why there is nothing more, when the status is not "ran"."""
    device: str = ""
    """Where it really ran: ``cuda (NVIDIA ...)``, ``simulated`` or ``cpu``."""
    seconds: float = 0.0
    values: dict[str, Snapshot] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    """The floating tensors that the setup made."""
    gradients: dict[str, Snapshot] = field(default_factory=dict)
    """Of the inputs, by the harness, for a fixed weighting of the watched results."""
    exception: Raised | None = None
    output: Output = field(default_factory=Output)
    files: dict[str, Snapshot] = field(default_factory=dict)
    """What it wrote in its folder."""
    held_nodes: int = 0
    """How many nodes of the autograd graph the watched values keep alive."""
    warnings: list[str] = field(default_factory=list)
    random: dict[str, str] = field(default_factory=dict)
    """Digests of the random number generators' states at the end."""
    opened: dict[str, int] = field(default_factory=dict)
    """How often h5py opened a file, in the main process and in workers."""
    emulated: bool = False
    """Whether torch was made to mean what an older one meant."""
    emulations: dict[str, int] = field(default_factory=dict)
    """Which emulations of old torch were used, and how often."""

    def plain(self) -> dict[str, Any]:
        """The trace as plain data."""
        return {**asdict_shallow(self), "status": str(self.status)}

    @classmethod
    def from_plain(cls, data: object) -> Trace:
        """A trace from plain data; ValueError when it is no trace."""
        if not isinstance(data, dict) or set(data) != {one.name for one in fields(cls)}:
            raise ValueError("it is no trace")
        try:
            trace = cls(**data)
            trace.status = Status(trace.status)
            trace.exception = Raised(**data["exception"]) if data["exception"] is not None else None
            trace.output = Output(**data["output"])
        except TypeError as error:
            raise ValueError(f"it is no trace: {error}") from None
        for part in (trace, trace.output, *([trace.exception] if trace.exception else [])):
            _check(part)
        return trace


def printable(text: str) -> str:
    """Somebody else's text on one line, without what a terminal would act on."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def _check(part: Any) -> None:
    """Raise ValueError where a field of a dataclass does not hold what it says."""
    for name, kind in get_type_hints(type(part)).items():
        if not _is(getattr(part, name), kind):
            raise ValueError(f"its {name} is no {kind.__name__ if isinstance(kind, type) else kind}")


def _is(value: Any, kind: Any) -> bool:
    """Whether a value is of a type, and what it holds too."""
    if kind is Any:
        return True
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return any(_is(value, one) for one in inner)
    if origin is list:
        return type(value) is list and all(_is(one, inner[0]) for one in value)
    if origin is dict:
        return type(value) is dict and all(_is(key, inner[0]) and _is(one, inner[1]) for key, one in value.items())
    return type(value) is kind


def asdict_shallow(trace: Trace) -> dict[str, Any]:
    """Like ``dataclasses.asdict``, but without copying tensors."""
    plain = {one.name: getattr(trace, one.name) for one in fields(trace)}
    plain["exception"] = asdict(trace.exception) if trace.exception else None
    plain["output"] = asdict(trace.output)
    return plain
