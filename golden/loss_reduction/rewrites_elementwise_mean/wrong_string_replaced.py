import torch
import torch.nn as nn
import torch.nn.functional as F

a = nn.MSELoss(reduction='mean')(x, y)
b = F.l1_loss(x, y, reduction='mean')
c = F.mse_loss(x, y, reduction='sum')
note = 'mean'
