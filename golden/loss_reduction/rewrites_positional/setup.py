import torch

logp = torch.log_softmax(torch.tensor([[1.0, 2.0], [3.0, 1.0]]), dim=1)
target = torch.tensor([0, 1])
