import sys

import torch
import torch.nn.functional as F

options = {"sum": True}
x, y, mask = torch.zeros(2), torch.ones(2), None
a = F.mse_loss(x, y, reduction="mean" if not options["sum"] else "sum")
b = F.mse_loss(x, y, reduction="mean" if mask is None else "none")
c = F.mse_loss(x, y, reduction="none" if not (True if mask is None else False) else "mean" if "sum" not in options else "sum")
d = F.mse_loss(x, y, reduction="sum" if not (options or mask) else "none")
e = F.mse_loss(x, y, reduction="mean" if "-v" in sys.argv and not options else "sum")
