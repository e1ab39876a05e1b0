import torch
import torch.nn.functional as F

loss = F.mse_loss(*pair, reduction="mean")
