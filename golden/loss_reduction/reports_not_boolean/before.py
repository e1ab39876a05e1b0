import torch.nn as nn

zero = nn.MSELoss(size_average=0)
text = nn.MSELoss("sum")
one = nn.MSELoss(reduce=1, size_average=False)
