import sys
import types

import torch

sys.modules["somewhere"] = types.ModuleType("somewhere")
sys.modules["somewhere"].nn = "what the star brings, and the import below it replaces"
x = torch.tensor([0.5, -1.0, 2.0])
y = torch.tensor([1.0, 1.0, -1.0])
