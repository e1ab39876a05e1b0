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


a = th.nn.MSELoss(reduction="sum")(x, y)
b = torch.nn.functional.kl_div(x, y, reduction="sum")
c = BCELoss(reduction="sum")(x, y)
d = KL(reduction="none")(x, y)
e = build()(x, y, reduction="sum")
f = Loss(reduction="sum")(x, y)
