"""Levels and an example, by transform: from the golden cases, by `torchmod docs --write`: do not edit."""

from typing import NamedTuple


class Example(NamedTuple):
    """The levels a transform's findings have, and its first golden case."""

    levels: tuple[str, ...]
    before: str
    after: str


# fmt: off
EXAMPLES: dict[str, Example] = {
    "loss-reduction": Example(
        ("safe", "unsafe", "note"),
        (
            "from somewhere import *\n"
            "\n"
            "import torch\n"
            "import torch.nn as nn\n"
            "\n"
            "loss = nn.MSELoss(size_average=False)(x, y)\n"
        ),
        (
            "from somewhere import *\n"
            "\n"
            "import torch\n"
            "import torch.nn as nn\n"
            "\n"
            "loss = nn.MSELoss(reduction=\"sum\")(x, y)\n"
        ),
    ),
}
# fmt: on
