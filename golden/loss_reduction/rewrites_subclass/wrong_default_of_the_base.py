import torch.nn as nn
from torch.nn.modules.loss import _Loss, _WeightedLoss


class First(nn.NLLLoss):
    def __init__(self, weight=None):
        super(First, self).__init__(weight, ignore_index=-1, reduction="sum")


class Second(_WeightedLoss):
    def __init__(self, weight=None, strict=False):
        if strict:
            super().__init__(weight, reduction="none")
        else:
            _WeightedLoss.__init__(self, weight, reduction="mean")


class Third(_Loss):
    pass


class Fourth(Third):
    def __init__(self):
        super().__init__()


first = First()(logp, target)
second, strict = Second(), Second(strict=True)
third, fourth = Third(reduction="sum"), Fourth()
