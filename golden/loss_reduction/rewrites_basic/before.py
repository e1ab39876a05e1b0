import torch
import torch.nn as nn
import torch.nn.functional as F

total = nn.MSELoss(size_average=False)(x, y)
mean = F.smooth_l1_loss(x, y, size_average=True)
each = nn.L1Loss(reduce=False)(x, y)
default = nn.L1Loss(size_average=None)(x, y)
