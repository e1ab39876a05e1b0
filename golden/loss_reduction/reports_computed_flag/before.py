import torch.nn as nn


def build(config):
    first = nn.CrossEntropyLoss(None, config.pop("average"), config.pop("ignore"))
    second = nn.MSELoss(size_average=config.pop("average"), reduce=config.pop("reduce"))
    return first, second
