import torch
import torch.nn.functional as F

total = 0
for _ in range(2): total += F.mse_loss(x, y, reduction="sum")
total += F.l1_loss(x, y, reduction="sum")
if total: loss = \
    F.mse_loss(x, y, reduction="sum")
best = min((F.mse_loss(x, k * y, reduction="sum") for k in range(3)), key=lambda v: -F.l1_loss(x, v * y, reduction="none")[0])
