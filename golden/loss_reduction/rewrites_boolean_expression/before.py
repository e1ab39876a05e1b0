import sys

import torch
import torch.nn.functional as F

options = {"sum": True}
x, y, mask = torch.zeros(2), torch.ones(2), None
a = F.mse_loss(x, y, size_average=not options["sum"])
b = F.mse_loss(x, y, reduce=mask is None)
c = F.mse_loss(x, y, size_average="sum" not in options, reduce=True if mask is None else False)
d = F.mse_loss(x, y, reduce=not (options or mask), size_average=False)
e = F.mse_loss(x, y, "-v" in sys.argv and not options)
