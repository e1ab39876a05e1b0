import torch

log_q = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3]]).log()
p = torch.tensor([[0.5, 0.25, 0.25], [0.3, 0.3, 0.4]])
