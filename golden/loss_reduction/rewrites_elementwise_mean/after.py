import torch
import torch.nn as nn
import torch.nn.functional as F

x, y = torch.zeros(2, 3), torch.ones(2, 3)
a = nn.MSELoss(reduction='mean')(x, y)
b = F.l1_loss(x, y, reduction='mean')
c = F.mse_loss(x, y, reduction='sum')
note = 'elementwise_mean'
