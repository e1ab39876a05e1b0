import torch

x = torch.tensor([0.25, 0.5, 0.75])
y = torch.tensor([0.5, 0.9, 0.1])
