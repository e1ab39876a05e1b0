import torch.nn as nn

try:
    from torch.nn import MSELoss
except ImportError:
    from nnlib import MSELoss

nn.L1Loss = object
first = MSELoss(size_average=False)
second = nn.L1Loss(size_average=False)
third = (nn.BCELoss or MSELoss)(size_average=False)
