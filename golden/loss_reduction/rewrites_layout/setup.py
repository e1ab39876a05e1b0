import torch

x = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.0, -0.5], [0.0, 1.0, 0.5]])
y = torch.tensor([0, 1, 2])
