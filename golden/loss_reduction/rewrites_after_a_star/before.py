from somewhere import *

import torch
import torch.nn as nn

loss = nn.MSELoss(size_average=False)(torch.zeros(2), torch.ones(2))
