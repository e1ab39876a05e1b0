import torch
import torch.nn as nn
import torch.nn.functional as F


class SegLoss(nn.Module):
    def __init__(self, size_average=True, reduce=True):
        super().__init__()
        self.size_average = size_average
        self.reduce = reduce
        self.pixel = nn.CrossEntropyLoss(None, size_average, 255)

    def forward(self, x, y):
        first = F.cross_entropy(x, y, size_average=self.size_average)
        second = F.cross_entropy(x, y, reduce=self.reduce)
        third = F.cross_entropy(x, y, size_average=self.size_average, reduce=self.reduce)
        fourth = F.cross_entropy(x, y, size_average=False, reduce=self.reduce or self.training)
        fifth = F.cross_entropy(x, y, size_average=self.reduce if self.training else True)
        sixth = F.cross_entropy(x, y, size_average=bool(self.reduce), ignore_index=3)
        return first, second, third, fourth, fifth, sixth


losses = [SegLoss(average, reduce) for average in (True, False) for reduce in (True, False)]
out = [loss(x, y) for loss in losses]
at_rest = [loss.eval()(x, y) for loss in losses]
