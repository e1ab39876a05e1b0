import torch

x = torch.zeros(4)
y = torch.arange(4.0)
