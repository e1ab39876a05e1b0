import torch

x = torch.tensor([[0.5, -1.0, 2.0, 0.0], [1.5, 0.0, -0.5, 1.0], [0.0, 1.0, 0.5, -2.0]])
y = torch.tensor([0, 3, 1])
