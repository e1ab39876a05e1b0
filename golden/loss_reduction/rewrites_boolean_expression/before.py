import sys

import torch
import torch.nn.functional as F


def losses(options, mask, arguments):
    sys.argv[1:] = arguments
    a = F.mse_loss(x, y, size_average=not options["sum"])
    b = F.mse_loss(x, y, reduce=mask is None)
    c = F.mse_loss(x, y, size_average="mean" not in options, reduce=True if mask is None else False)
    d = F.mse_loss(x, y, reduce=not (arguments or mask), size_average=False)
    e = F.mse_loss(x, y, "-v" in sys.argv and not mask)
    return a, b, c, d, e


yes, no = {"sum": True}, {"sum": False, "mean": 1}
out = [losses(*one) for one in ((yes, None, []), (no, [0], ["-v"]), (no, None, ["-v"]), (yes, [0], []))]
f = F.mse_loss(x, y, size_average=yes, reduce=False)
