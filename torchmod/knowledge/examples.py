"""Levels and an example, by transform: from the golden cases, by `torchmod docs --write`: do not edit."""

from typing import NamedTuple


class Example(NamedTuple):
    """The levels a transform's findings have, and its first golden case."""

    levels: tuple[str, ...]
    before: str
    after: str


# fmt: off
EXAMPLES: dict[str, Example] = {
}
# fmt: on
