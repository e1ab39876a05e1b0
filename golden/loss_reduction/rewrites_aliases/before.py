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


a = th.nn.MSELoss(size_average=False)
b = torch.nn.functional.kl_div(th.zeros(2), th.ones(2), size_average=False)
c = BCELoss(size_average=False)
d = KL(reduce=False)
e = l1_loss(th.zeros(2), th.ones(2), size_average=False)
f = Loss(size_average=False)
