"""The battery: what CUDA code may expect, checked on a real device or on the simulated one.

On a machine with a GPU it shows whether the simulated device does what a real one does: each check has to pass on both.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch

from torchmod.verify import checks as package
from torchmod.verify import simulated
from torchmod.verify.confine import Limits
from torchmod.verify.trace import Ended, Status
from torchmod.verify.zygote import run_functions

DEVICES = 2
LIMITS = Limits(seconds=60)
Answer = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class BatteryResult:
    """How one check went; ``reason`` says why it did not pass."""

    name: str
    status: Answer
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.status}" + (f" ({self.reason})" if self.reason else "")


def checks() -> dict[str, Callable[[], None]]:
    """All checks, by name: that of their module and their own."""
    return dict(find_checks())


def find_checks() -> Iterator[tuple[str, Callable[[], None]]]:
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and is_check(function):
                yield f"{info.name}.{name}", function


def is_check(function: Callable[..., object]) -> bool:
    signature = inspect.signature(function)
    return not signature.parameters and signature.return_annotation in (None, "None")


def run_battery(device: str = "auto") -> list[BatteryResult]:
    """Run all checks, each in a process of its own, on a `cuda` device, the `simulated` one, or what there is."""
    if not __debug__:
        raise RuntimeError("the checks are assertions: run Python without -O")
    simulate = device == "simulated" or (device == "auto" and not simulated.real_cuda())
    found = checks()
    importlib.import_module("torch._dynamo")  # once, instead of in each process that makes an optimizer
    ended = run_functions([partial(run_check, name, simulate=simulate) for name in found], LIMITS)
    return [result_of(name, one) for name, one in zip(found, ended, strict=True)]


def run_check(name: str, *, simulate: bool) -> str:
    """Run a check in this process, which is spoilt by it; gives why it was skipped, if it was."""
    check = checks()[name]
    if simulate:
        simulated.install(DEVICES)
    needed = getattr(check, "devices", 1)
    if torch.cuda.device_count() < needed:
        return f"it needs {needed} devices"
    try:
        check()
    except ModuleNotFoundError as error:
        return f"it needs {error.name}"
    return ""


def result_of(name: str, ended: Ended) -> BatteryResult:
    if ended.status is not Status.RAN:
        return BatteryResult(name, "failed", ended.reason)
    return BatteryResult(name, "skipped", ended.value) if ended.value else BatteryResult(name, "passed")
