from collections import namedtuple

import torch
import torch.nn as nn

Step = namedtuple("Step", ["loss", "reduce"])
step = Step(loss=nn.MSELoss(), reduce=False)
out = torch.zeros(3).scatter(0, torch.tensor([0]), torch.ones(1), reduce="add")
total = torch.zeros(3).index_reduce(0, torch.tensor([0]), torch.ones(1), reduce="prod")
