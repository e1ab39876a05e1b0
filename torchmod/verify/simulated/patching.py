"""Replacing what belongs to torch."""

from typing import Any


def replace(owner: Any, **attributes: Any) -> None:
    """Set attributes of a class or module; it cannot be undone, so only a child process may do it."""
    for name, value in attributes.items():
        setattr(owner, name, value)
