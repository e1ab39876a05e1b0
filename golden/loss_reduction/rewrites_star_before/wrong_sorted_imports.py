import torch
import torch.nn as nn
from somewhere import *

loss = nn.MSELoss(reduction="sum")(x, y)
