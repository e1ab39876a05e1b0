from somewhere import *

import torch
import torch.nn as nn

loss = nn.MSELoss(reduction="sum")(torch.zeros(2), torch.ones(2))
