import torch.nn as nn

loss = nn.CrossEntropyLoss(size_average=(
    # sum over the batch
    False
))
