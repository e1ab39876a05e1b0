import torch.nn as nn
from torch.nn import MSELoss

globals().update(MSELoss=dict, nn=None)
first = MSELoss(size_average=False)
second = nn.L1Loss(size_average=False)
