import sys

import torch
import torch.nn.functional as F


def losses(options, mask, arguments):
    sys.argv[1:] = arguments
    a = F.mse_loss(x, y, reduction="mean" if options["sum"] else "sum")
    b = F.mse_loss(x, y, reduction="mean" if mask is None else "none")
    c = F.mse_loss(x, y, reduction="none" if not (True if mask is None else False) else "mean" if "mean" not in options else "sum")
    d = F.mse_loss(x, y, reduction="sum" if not (arguments or mask) else "none")
    e = F.mse_loss(x, y, reduction="mean" if "-v" in sys.argv and not mask else "sum")
    return a, b, c, d, e


yes, no = {"sum": True}, {"sum": False, "mean": 1}
out = [losses(*one) for one in ((yes, None, []), (no, [0], ["-v"]), (no, None, ["-v"]), (yes, [0], []))]
f = F.mse_loss(x, y, reduction="none")
