import os

import torch.nn as nn

loss = nn.MSELoss(size_average=False, reduction=os.environ.pop("REDUCTION"))
