import torch
import torch.nn.functional as F

x, y = torch.rand(2, 3), torch.rand(2, 3)
outer = F.mse_loss(F.l1_loss(x, y, reduction="none"), F.l1_loss(y, x, reduction="none"), reduction="sum") ** 2
chain = F.mse_loss(x, y, reduction="sum").add(F.mse_loss(y, x, reduction="none").mean())
