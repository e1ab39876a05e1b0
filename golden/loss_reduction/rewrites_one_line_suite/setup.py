import torch

x = torch.tensor([0.5, -1.0, 2.0])
y = torch.tensor([1.0, 1.0, -1.0])
