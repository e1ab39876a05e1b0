from unittest import mock

import torch.nn as nn
import torch.nn.functional as F
from torch.nn import L1Loss

with mock.patch("torch.nn.MSELoss") as fake:
    nn.MSELoss(size_average=False)
vars(F)["l1_loss"] = print
F.l1_loss(1, 2, size_average=False)
mock.patch.multiple(nn, BCELoss=fake)
nn.BCELoss(size_average=False)
