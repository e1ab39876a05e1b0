import torch.nn as nn
import torch.nn.functional as F


class FocalLoss(nn.Module):
    """Our own loss, with a flag of its own."""

    def __init__(self, gamma=2, size_average=True):
        super(FocalLoss, self).__init__()
        self.gamma = gamma
        self.size_average = size_average

    def forward(self, out, target):
        ce = F.cross_entropy(out, target, reduce=False)  # one value a sample
        focal = (1 - (-ce).exp()) ** self.gamma * ce
        return focal.mean() if self.size_average else focal.sum()


class WeightedNLL(nn.NLLLoss):
    def __init__(self, weight=None, size_average=True, ignore_index=-100):
        super(WeightedNLL, self).__init__(weight, size_average, ignore_index)
