import torch
import torch.nn.functional as F

print(f"sum {F.mse_loss(x, y, reduction='mean')}")
print(f'mean {F.mse_loss(x, y, reduction="mean"):.3f}' f"each {F.mse_loss(x, y, reduction='none')!r}")
plain = F.mse_loss(x, y, reduction="sum")
