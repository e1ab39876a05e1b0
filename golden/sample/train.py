"""Train a small classifier; written for torch 0.4."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from losses import FocalLoss, WeightedNLL

parser = argparse.ArgumentParser()
parser.add_argument('--mean', action='store_true', help='average the loss over the batch')
parser.add_argument('--epochs', type=int, default=2)
args = parser.parse_args()

net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
criterion = nn.CrossEntropyLoss(
    torch.ones(3),  # one weight a class
    False,          # sum over the batch
    -1,             # label of what is not annotated
)
per_sample = nn.CrossEntropyLoss(size_average=False, reduce=False)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

x, y = torch.randn(32, 8), torch.randint(3, (32,))
for epoch in range(args.epochs):
    out = net(x)
    loss = criterion(out, y) + F.smooth_l1_loss(out, torch.zeros_like(out), size_average=args.mean)
    loss = loss + FocalLoss(size_average=False)(out, y) + WeightedNLL()(F.log_softmax(out, 1), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print('epoch %d, hardest sample %d' % (epoch, per_sample(net(x), y).max(0)[1]))
