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
            "import torch\n"
            "import torch.nn as nn\n"
            "import torch.nn.functional as F\n"
            "\n"
            "total = nn.MSELoss(size_average=False)(x, y)\n"
            "mean = F.smooth_l1_loss(x, y, size_average=True)\n"
            "each = nn.L1Loss(reduce=False)(x, y)\n"
            "default = nn.L1Loss(size_average=None)(x, y)\n"
        ),
        (
            "import torch\n"
            "import torch.nn as nn\n"
            "import torch.nn.functional as F\n"
            "\n"
            "total = nn.MSELoss(reduction=\"sum\")(x, y)\n"
            "mean = F.smooth_l1_loss(x, y, reduction=\"mean\")\n"
            "each = nn.L1Loss(reduction=\"none\")(x, y)\n"
            "default = nn.L1Loss()(x, y)\n"
        ),
    ),
}
# fmt: on
