import torch
import torch.nn.functional as F

log_q, p = torch.log(torch.full((2, 3), 1 / 3)), torch.full((2, 3), 1 / 3)
mean = F.kl_div(log_q, p, size_average=True)  # over batch and elements, as ever
total = F.kl_div(log_q, p, size_average=False)
