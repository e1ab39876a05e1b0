import torch
from torch.nn.functional import mse_loss

results = [
    mse_loss(x, y, size_average=None, reduce=None, reduction='sum'),
    mse_loss(x, y, size_average=None, reduce=True, reduction='sum'),
    mse_loss(x, y, size_average=None, reduce=False),
    mse_loss(x, y, size_average=True, reduce=None),
    mse_loss(x, y, size_average=True, reduce=True),
    mse_loss(x, y, size_average=True, reduce=False),
    mse_loss(x, y, size_average=False, reduce=None),
    mse_loss(x, y, size_average=False, reduce=True, reduction='none'),
    mse_loss(x, y, reduce=False, size_average=False),
]
