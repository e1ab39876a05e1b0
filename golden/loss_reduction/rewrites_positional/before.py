import torch
import torch.nn as nn
import torch.nn.functional as F

weight = torch.tensor([3.0, 2.0])
a = nn.MSELoss(False)(logp, torch.zeros(2, 2))
b = F.nll_loss(logp, target, None, False)
c = nn.CrossEntropyLoss(weight, True, 1)(logp, target)
d = nn.CrossEntropyLoss(weight, False, 1, False, label_smoothing=0.1)(logp, target)
e = nn.PoissonNLLLoss(False, False, False, 0.5)(weight, logp.exp().diag())
f = F.multi_margin_loss(logp, target, 1, 1.0, weight, False)
g = F.mse_loss(logp, logp + 1, None, None, 'sum')
h = nn.TripletMarginLoss(1.0, 2.0, 1e-6, False, False)(logp, logp + 1, logp - 1)
