import torch as th
import torch.nn
from torch import nn as layers
from torch.nn import *
from torch.nn.modules.loss import KLDivLoss as KL

try:
    from torch.nn.functional import l1_loss
except ImportError:
    l1_loss = None

Base, other = torch.nn.MSELoss, 3
Loss = Base if other else layers.L1Loss


def build():
    import torch.nn.functional as F
    return F.mse_loss


a = th.nn.MSELoss(size_average=False)(x, y)
b = torch.nn.functional.kl_div(x, y, size_average=False)
c = BCELoss(size_average=False)(x, y)
d = KL(reduce=False)(x, y)
e = l1_loss(x, y, size_average=False)
f = Loss(size_average=False)(x, y)
