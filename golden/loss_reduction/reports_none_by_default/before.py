import torch.nn as nn
import torch.nn.functional as F


class Loss(nn.CrossEntropyLoss):
    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


def loss(x, y, flag, *, size_average=None):
    return F.mse_loss(x, y, size_average=size_average) + F.mse_loss(x, y, size_average=flag, reduction="sum")
