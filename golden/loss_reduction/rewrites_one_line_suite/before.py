import torch
import torch.nn.functional as F

total = 0
for _ in range(2): total += F.mse_loss(x, y, size_average=False); total += F.l1_loss(x, y, False)
if total: loss = \
    F.mse_loss(x, y, size_average=False)
best = min((F.mse_loss(x, k * y, size_average=False) for k in range(3)), key=lambda v: -F.l1_loss(x, v * y, reduce=False)[0])
