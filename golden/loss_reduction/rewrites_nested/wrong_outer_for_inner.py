import torch
import torch.nn.functional as F

outer = F.mse_loss(F.l1_loss(x, y, reduction="sum"), F.l1_loss(y, 2 * x, reduction="none"), reduction="sum") ** 2
chain = F.mse_loss(x, y, reduction="sum").add(F.mse_loss(y, x, reduction="none").max())
