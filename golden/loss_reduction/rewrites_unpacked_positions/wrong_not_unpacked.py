import torch
import torch.nn.functional as F

loss = F.mse_loss(pair[0], pair[0], reduction="sum")
