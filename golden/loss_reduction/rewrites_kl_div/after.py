import torch
import torch.nn.functional as F

mean = F.kl_div(log_q, p, reduction="mean")  # over batch and elements, as ever
total = F.kl_div(log_q, p, reduction="sum")
