import torch.nn as nn

# criterion = nn.MSELoss(size_average=False)
HELP = "use nn.MSELoss(size_average=False)"


def build():
    """Build the criterion.

    >>> build()  # nn.MSELoss(size_average=False)
    """
    return nn.MSELoss()
