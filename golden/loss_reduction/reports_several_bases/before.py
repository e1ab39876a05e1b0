import torch.nn as nn


class Mixin(nn.modules.loss._Loss):
    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__(reduction=reduction)
        self.average = size_average


class Mixed(nn.MSELoss, Mixin):
    pass


class Asking(nn.MSELoss, Mixin):
    def __init__(self):
        super().__init__(size_average=False)


loss = Mixed(size_average=False)
