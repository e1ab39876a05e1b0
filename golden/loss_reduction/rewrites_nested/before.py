import torch
import torch.nn.functional as F

x, y = torch.rand(2, 3), torch.rand(2, 3)
outer = F.mse_loss(F.l1_loss(x, y, reduce=False), F.l1_loss(y, x, reduce=False), size_average=False) ** 2
chain = F.mse_loss(x, y, False).add(F.mse_loss(y, x, None, False).mean())
