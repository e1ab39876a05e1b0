import torch.nn as nn

stack = [-1]
first = nn.NLLLoss(None, not stack, stack.pop())
second = nn.NLLLoss(size_average=not stack, ignore_index=stack.pop(), reduce=not stack)
third = nn.NLLLoss(size_average=stack.pop(), ignore_index=stack.pop(), reduction="mean")
fourth = nn.MSELoss(size_average=False, reduction={"a": "sum"}["b"])
