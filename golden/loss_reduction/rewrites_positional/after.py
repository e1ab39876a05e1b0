import torch
import torch.nn as nn
import torch.nn.functional as F

weight = torch.tensor([3.0, 2.0])
a = nn.MSELoss(reduction='sum')(logp, torch.zeros(2, 2))
b = F.nll_loss(logp, target, None, reduction='sum')
c = nn.CrossEntropyLoss(weight, ignore_index=1, reduction='mean')(logp, target)
d = nn.CrossEntropyLoss(weight, ignore_index=1, reduction='none', label_smoothing=0.1)(logp, target)
e = nn.PoissonNLLLoss(False, False, eps=0.5, reduction='sum')(weight, logp.exp().diag())
f = F.multi_margin_loss(logp, target, 1, 1.0, weight, reduction='sum')
g = F.mse_loss(logp, logp + 1, reduction='sum')
h = nn.TripletMarginLoss(1.0, 2.0, 1e-6, False, reduction='sum')(logp, logp + 1, logp - 1)
