import torch
import torch.nn as nn
import torch.nn.functional as F

total = nn.MSELoss(reduction="sum")(x, y)
mean = F.smooth_l1_loss(x, y, reduction="sum")
each = nn.L1Loss(reduction="none")(x, y)
default = nn.L1Loss()(x, y)
