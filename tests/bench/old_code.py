"""Code as it was written for torch 0.3, made up here: the same every time, and of any length."""

from __future__ import annotations

from pathlib import Path

TREE_FILES = 300
HEADER = '''"""Made up for the benchmark."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable

'''
BLOCK = '''
def step_{number}(net, optimizer, batches, weight=None):
    """One pass over the data."""
    total, seen = 0, []
    for index, (images, labels) in enumerate(batches):
        images, labels = Variable(images.cuda()), Variable(labels.cuda())
        output = net(images.view(images.size(0), -1) * {number})
        loss = {loss}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.data[0]
        seen.append([value for value in labels.data.cpu().numpy() if value > 0])
        if index % 100 == 0:
            print("step {{}}: {{:.3f}}".format(index, total / (index + 1)), len(seen))
    return total / max(1, len(seen))


criterion = {module}
'''
TARGETS = (
    ("F.cross_entropy(output, labels, size_average=False)", "nn.LogSoftmax(dim=1)"),
    ("nn.CrossEntropyLoss(weight, False)(output, labels)  # a sum", "nn.Softmax(1)"),
    ("F.mse_loss(output.float(), labels.float(), reduce=False).mean()", "nn.ReLU(inplace=True)"),
    ("F.l1_loss(\n            output, labels, size_average=False\n        )", "torch.zeros(3)"),
)
"""A loss with an old flag; and what the file's top level binds, again and again, to one name."""
OTHERS = (("net(output, labels)", "nn.Linear(3, 4)"), ("(output - labels).sum()", "nn.Tanh()"))
PLAIN = '''
def mean_{number}(rows, scale={number}):
    """The mean of what is positive in some rows."""
    total, seen = 0, []
    for index, row in enumerate(rows):
        kept = [value * scale for value in row if value > 0]
        if not kept:
            continue
        total += sum(kept) / len(kept)
        seen.append(index)
    return total / max(1, len(seen))

'''


def legacy_code(lines: int) -> str:
    """At least that many lines, with an old loss call about every 20."""
    return _blocks(HEADER, BLOCK, TARGETS, lines)


def targetless_code(lines: int) -> str:
    """Old code that uses torch, but no loss."""
    return _blocks(HEADER, BLOCK, OTHERS, lines)


def plain_code(lines: int, header: str = "import torch\n") -> str:
    """Code with nothing in it that was ever renamed or deprecated."""
    return _blocks(header, PLAIN, (("", ""),), lines)


def _blocks(header: str, block: str, values: tuple[tuple[str, str], ...], lines: int) -> str:
    parts, length = [header], header.count("\n")
    while length < lines:
        loss, module = values[len(parts) % len(values)]
        parts.append(block.format(number=len(parts), loss=loss, module=module))
        length += parts[-1].count("\n")
    return "".join(parts)


def write_tree(folder: Path) -> Path:
    """A tree of old code: one file in six holds a loss, three in six other torch code, two none."""
    for number in range(TREE_FILES):
        package = folder / f"project_{number % 12}" / f"part_{number % 5}"
        package.mkdir(parents=True, exist_ok=True)
        lines = 40 + number * 37 % 260
        match number % 6:
            case 0:
                text = legacy_code(lines)
            case 1 | 2 | 3:
                text = targetless_code(lines)
            case _:
                text = plain_code(lines, "import json\n")
        (package / f"module_{number}.py").write_text(text)
    return folder
