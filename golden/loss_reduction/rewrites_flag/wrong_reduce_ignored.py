import torch
import torch.nn as nn
import torch.nn.functional as F


class SegLoss(nn.Module):
    def __init__(self, size_average=True, reduce=True):
        super().__init__()
        self.size_average = size_average
        self.reduce = reduce
        self.pixel = nn.CrossEntropyLoss(None, ignore_index=255, reduction="mean" if size_average else "sum")

    def forward(self, x, y):
        first = F.cross_entropy(x, y, reduction="mean" if self.size_average else "sum")
        second = F.cross_entropy(x, y, reduction="mean" if self.reduce else "none")
        third = F.cross_entropy(x, y, reduction="mean" if self.size_average else "sum")
        fourth = F.cross_entropy(x, y, reduction="sum" if self.reduce or self.training else "none")
        fifth = F.cross_entropy(x, y, reduction="mean" if (self.reduce if self.training else True) else "sum")
        sixth = F.cross_entropy(x, y, reduction="mean" if bool(self.reduce) else "sum", ignore_index=3)
        return first, second, third, fourth, fifth, sixth


losses = [SegLoss(average, reduce) for average in (True, False) for reduce in (True, False)]
out = [loss(x, y) for loss in losses]
at_rest = [loss.eval()(x, y) for loss in losses]
