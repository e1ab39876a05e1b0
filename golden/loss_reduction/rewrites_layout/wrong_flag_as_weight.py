import torch
from torch import nn

weight = torch.tensor([1.0, 2.0, 3.0])
one = nn.CrossEntropyLoss(
    weight=weight,  # a weight for each class
    reduction="sum",  # sum over the batch
    ignore_index=1,
)
two = nn.CrossEntropyLoss(
    weight,
    # not the mean
    ignore_index=-1,  # nothing is ignored
    reduction="sum",
)
three = nn.CrossEntropyLoss(weight = weight, reduction = "none")
four = nn.NLLLoss(weight,reduction="none",
                  # one value a sample
                  ignore_index=2)
five = nn.NLLLoss( reduction="sum" )
six = nn.MSELoss(reduction="none",)
seven = nn.NLLLoss(
    weight,  # trailing
)
out = [loss(x, y) for loss in (one, two, three, four, five, seven)], six(x, x * x)
