import torch
import torch.nn as nn
import torch.nn.functional as F
from pytorch_msssim import SSIM


def smooth_l1_loss(input, target, beta=1.0, size_average=True):
    loss = F.smooth_l1_loss(input, target, reduction="none") / beta
    return loss.mean() if size_average else loss.sum()


class MSELoss(nn.Module):
    def __init__(self, size_average=True, reduce=True):
        super().__init__()
        self.size_average = size_average


ssim = SSIM(data_range=1.0, size_average=True, channel=3)
loss = smooth_l1_loss(torch.zeros(2), torch.ones(2), size_average=False)
own = MSELoss(size_average=False)
