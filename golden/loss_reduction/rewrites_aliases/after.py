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


a = th.nn.MSELoss(reduction="sum")
b = torch.nn.functional.kl_div(th.zeros(2), th.ones(2), reduction="sum")
c = BCELoss(reduction="sum")
d = KL(reduction="none")
e = l1_loss(th.zeros(2), th.ones(2), reduction="sum")
f = Loss(reduction="sum")
