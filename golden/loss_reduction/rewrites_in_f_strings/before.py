import torch
import torch.nn.functional as F

print(f"sum {F.mse_loss(x, y, size_average=False)}")
print(f'mean {F.mse_loss(x, y, size_average=True):.3f}' f"each {F.mse_loss(x, y, reduce=False)!r}")
plain = F.mse_loss(x, y, size_average=False)
