"""What the checks are written with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Check = TypeVar("Check", bound=Callable[[], None])

APART = "all tensors to be on the same device"


def raises(error: type[Exception], text: str, function: Callable[[], Any]) -> None:
    """Hold a call to an exception of a kind, whose message has a text in it."""
    message = None
    try:
        function()
    except error as caught:
        message = str(caught)
    assert message is not None, f"no {error.__name__} was raised"
    assert text.lower() in message.lower(), f"the message is: {message}"


def two_devices(check: Check) -> Check:
    """Mark a check that needs two devices."""
    check.devices = 2  # type: ignore[attr-defined]
    return check


def on_cuda(*tensors: Any) -> bool:
    return all(tensor.is_cuda for tensor in tensors)
