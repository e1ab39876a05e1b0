import torch.nn as nn
import torch.nn.functional as F


def build(options, pair):
    first = nn.MSELoss(size_average=False, **options)
    second = F.mse_loss(*pair, reduce=False)
    third = nn.CrossEntropyLoss(None, False, *options)
    return first, second, third, nn.MSELoss(**options)
