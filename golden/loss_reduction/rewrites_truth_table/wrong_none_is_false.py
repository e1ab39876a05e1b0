import torch
from torch.nn.functional import mse_loss

results = [
    mse_loss(x, y, reduction='sum'),
    mse_loss(x, y, reduction='mean'),
    mse_loss(x, y, reduction='none'),
    mse_loss(x, y, reduction='none'),
    mse_loss(x, y, reduction='mean'),
    mse_loss(x, y, reduction='none'),
    mse_loss(x, y, reduction='none'),
    mse_loss(x, y, reduction='sum'),
    mse_loss(x, y, reduction='none'),
]
