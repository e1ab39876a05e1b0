import torch.nn as nn
from torch.nn.modules.loss import _Loss, _WeightedLoss


class First(nn.NLLLoss):
    def __init__(self, weight=None):
        super(First, self).__init__(weight, False, -1)


class Second(_WeightedLoss):
    def __init__(self, weight=None, strict=False):
        if strict:
            super().__init__(weight, reduce=False)
        else:
            _WeightedLoss.__init__(self, weight, True)


class Third(_Loss):
    pass


class Fourth(Third):
    def __init__(self):
        super().__init__(False)


first = First()(logp, target)
second, strict = Second(), Second(strict=True)
third, fourth = Third(False), Fourth()
