import torch
import torch.nn.functional as F

pair = torch.zeros(2), torch.ones(2)
loss = F.mse_loss(*pair, size_average=False)
