import torch
from torch import nn

weight = torch.tensor([1.0, 2.0, 3.0])
one = nn.CrossEntropyLoss(
    weight=weight,  # a weight for each class
    size_average=False,  # sum over the batch
    ignore_index=1,
)
two = nn.CrossEntropyLoss(
    weight,
    # not the mean
    False,
    -1,  # nothing is ignored
    True,
)
three = nn.CrossEntropyLoss(weight = weight, size_average = False , reduce = False)
four = nn.NLLLoss(weight,size_average=True,
                  reduce=False,  # one value a sample
                  ignore_index=2)
five = nn.NLLLoss( (weight) , (False) )
six = nn.MSELoss(size_average=True, reduce=False,)
seven = nn.NLLLoss(
    weight,  # trailing
    None,
)
out = [loss(x, y) for loss in (one, two, three, four, five, seven)], six(x, x * x)
