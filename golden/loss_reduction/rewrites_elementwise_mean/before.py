import torch
import torch.nn as nn
import torch.nn.functional as F

a = nn.MSELoss(reduction='elementwise_mean')(x, y)
b = F.l1_loss(x, y, None, None, 'elementwise_mean')
c = F.mse_loss(x, y, size_average=False, reduction='elementwise_mean')
note = 'elementwise_mean'
