"""The form of a row in the tables of signatures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function, or of a class's constructor without ``self``, in order."""

    parameters: tuple[str, ...]
    keyword_only: tuple[str, ...] = ()

    @property
    def positional(self) -> tuple[str, ...]:
        """The parameters that an argument without a name can reach."""
        return tuple(p for p in self.parameters if p not in self.keyword_only)
