import torch.nn as nn
import torch.nn.functional as F


def train(F, nn):
    F.mse_loss(1, 2, size_average=False)
    return nn.MSELoss(size_average=False)


class Trainer:
    nn = object()

    def run(self, x):
        for nn in x:
            nn.MSELoss(size_average=False)
        return [F.mse_loss(size_average=False) for F in x], lambda nn: nn.MSELoss(size_average=False)
