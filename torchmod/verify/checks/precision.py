"""Mixed precision on a device."""

import warnings

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from torchmod.verify.checks.expecting import raises


def autocast_runs_layers_in_half_precision() -> None:
    module, inputs = nn.Linear(4, 4).cuda(), torch.ones(2, 4).cuda()
    with torch.autocast("cuda"):
        assert module(inputs).dtype == torch.float16
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert module(inputs).dtype == torch.bfloat16
    assert module(inputs).dtype == torch.float32


def autocast_runs_recurrent_layers_in_half_precision() -> None:
    inputs = torch.ones(3, 1, 4).cuda()
    with torch.autocast("cuda"):
        for layer in (nn.LSTM(4, 2), nn.GRU(4, 2), nn.RNN(4, 2)):
            outputs = layer.cuda()(inputs)[0]
            assert outputs.dtype == torch.float16
            outputs.sum().backward()
            assert next(layer.parameters()).grad is not None
        assert nn.LSTMCell(4, 2).cuda()(inputs[0])[0].dtype == torch.float16


def autocast_runs_losses_in_float32() -> None:
    module, inputs = nn.Linear(4, 4).cuda(), torch.ones(2, 4).cuda()
    with torch.autocast("cuda"):
        outputs = module(inputs)
        assert F.mse_loss(outputs, inputs).dtype == torch.float32
        assert F.softmax(outputs, 1).dtype == torch.float32
        assert F.relu(outputs).dtype == torch.float16
        assert (outputs + inputs).dtype == torch.float32
        assert torch.cat([outputs, inputs]).dtype == torch.float32
        raises(RuntimeError, "unsafe to autocast", lambda: F.binary_cross_entropy(torch.sigmoid(outputs), inputs))


def the_old_name_of_autocast_works() -> None:
    module, inputs = nn.Linear(4, 4).cuda(), torch.ones(2, 4).cuda()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.cuda.amp.autocast():
            assert module(inputs).dtype == torch.float16


def autocast_leaves_the_cpu_alone() -> None:
    module, inputs = nn.Linear(4, 4), torch.ones(2, 4)
    with torch.autocast("cuda"):
        assert module(inputs).dtype == torch.float32
    with torch.autocast("cpu"):
        assert module(inputs).dtype == torch.bfloat16
        assert module.cuda()(inputs.cuda()).dtype == torch.float32


def a_scaler_scales() -> None:
    module = nn.Linear(4, 4).cuda()
    optimizer, scaler = torch.optim.SGD(module.parameters(), 0.1), torch.amp.GradScaler("cuda")
    assert scaler.is_enabled()
    with torch.autocast("cuda"):
        loss = module(torch.ones(2, 4).cuda()).float().mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    gradient, before = module.weight.grad, module.weight.detach().clone()
    scaler.step(optimizer)
    scaler.update()
    assert gradient is not None
    assert gradient.is_cuda
    assert torch.isfinite(gradient).all()
    assert scaler.get_scale() > 1
    assert not torch.equal(before, module.weight)


def a_scaler_skips_a_step_that_overflows() -> None:
    module = nn.Linear(4, 4).cuda()
    optimizer, scaler = torch.optim.SGD(module.parameters(), 0.1), torch.amp.GradScaler("cuda", init_scale=64.0)
    before = module.weight.detach().clone()
    scaler.scale(module(torch.full((2, 4), float("inf")).cuda()).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(before, module.weight)
    assert scaler.get_scale() == 32.0
