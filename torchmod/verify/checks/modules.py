"""Modules on a device, and on several."""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from torchmod.verify.checks.expecting import on_cuda, two_devices


def a_module_moves_in_place() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    before = list(module.parameters())
    assert module.cuda() is module
    assert all(old is new for old, new in zip(before, module.parameters(), strict=True))
    assert on_cuda(*module.parameters(), *module.buffers())
    module.cpu()
    assert not any(parameter.is_cuda for parameter in module.parameters())


@two_devices
def a_module_moves_to_the_second_device() -> None:
    module = nn.Linear(2, 2).to("cuda:1")
    assert all(parameter.get_device() == 1 for parameter in module.parameters())
    assert nn.Linear(2, 2).cuda(1).weight.get_device() == 1


def values_are_those_of_the_cpu() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2))
    inputs = torch.randn(3, 4)
    expected = module(inputs)
    torch.testing.assert_close(module.cuda()(inputs.cuda()).cpu(), expected)


def recurrent_and_attention_layers_run() -> None:
    inputs = torch.randn(5, 2, 8).cuda()
    for layer in (nn.LSTM(8, 4, 2, bidirectional=True), nn.GRU(8, 4), nn.RNN(8, 4)):
        assert layer.cuda()(inputs)[0].is_cuda
    assert nn.MultiheadAttention(8, 2).cuda()(inputs, inputs, inputs)[0].is_cuda
    transformer = nn.TransformerEncoderLayer(8, 2, 16).cuda()
    transformer(inputs).sum().backward()
    assert on_cuda(*(parameter.grad for parameter in transformer.parameters()))
    assert nn.Embedding(5, 3).cuda()(torch.tensor([1, 2]).cuda()).is_cuda


def packed_sequences_run() -> None:
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(5, 2, 8).cuda(), torch.tensor([5, 3]))
    output, _ = nn.GRU(8, 4).cuda()(packed)
    assert nn.utils.rnn.pad_packed_sequence(output)[0].is_cuda


def composite_functions_stay_on_the_device() -> None:
    there, index = torch.randn(3, 4).cuda(), torch.tensor([0, 1, 2]).cuda()
    image = there[None, None]
    assert on_cuda(
        F.one_hot(index),
        torch.cdist(there, there),
        F.cosine_similarity(there, there),
        torch.einsum("ij,kj->ik", there, there),
        F.interpolate(image, scale_factor=2),
        F.grid_sample(image, torch.zeros(1, 2, 2, 2).cuda(), align_corners=False),
        F.pad(there, (1, 1)),
        F.kl_div(there, there.softmax(1), reduction="batchmean"),
        torch.where(there > 0, there, torch.zeros_like(there)),
        torch.linalg.inv(torch.eye(3).cuda()),
        torch.stack([there, there]),
    )


def methods_stay_on_the_device() -> None:
    there = torch.randn(3, 4).cuda()
    assert on_cuda(
        there.std(),
        there.topk(2)[0],
        there.sort()[1],
        torch.norm(there),
        there.masked_fill(there > 0, 0),
        torch.logsumexp(there, 1),
        there.unique(),
        there.nonzero(),
        there.repeat(2, 1),
        there.repeat_interleave(torch.tensor([1, 2, 1]).cuda(), 0),
    )


def one_device_in_data_parallel() -> None:
    module = nn.DataParallel(nn.Linear(2, 2), device_ids=[0]).cuda()
    assert module(torch.ones(4, 2)).is_cuda
    assert all(name.startswith("module.") for name in module.state_dict())


@two_devices
def two_devices_in_data_parallel() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, inputs: torch.Tensor) -> Any:
            assert inputs.get_device() == self.layer.weight.get_device()
            assert inputs.shape[0] == 2
            return self.layer(inputs)

    module = nn.DataParallel(Net()).cuda()
    outputs = module(torch.ones(4, 2).cuda())
    assert outputs.get_device() == 0
    assert outputs.shape == (4, 2)
    outputs.sum().backward()
    gradient = module.module.layer.weight.grad
    assert gradient is not None
    assert gradient.get_device() == 0
    alone = nn.Linear(2, 2).cuda()
    alone.load_state_dict(module.module.layer.state_dict())
    alone(torch.ones(4, 2).cuda()).sum().backward()
    torch.testing.assert_close(gradient, alone.weight.grad)


@two_devices
def a_model_over_two_devices_learns() -> None:
    first, second = nn.Linear(2, 3).to("cuda:0"), nn.Linear(3, 1).to("cuda:1")
    parameters = [*first.parameters(), *second.parameters()]
    for optimizer in (torch.optim.Adam(parameters), torch.optim.SGD(parameters, 0.1, momentum=0.9)):
        optimizer.zero_grad()
        second(first(torch.ones(4, 2).cuda()).to("cuda:1")).sum().backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
    assert str(first.weight.device) == "cuda:0"
    assert {parameter.grad.get_device() for parameter in second.parameters() if parameter.grad is not None} == {1}


def scripted_and_compiled_modules_run() -> None:
    scripted = torch.jit.script(nn.Linear(2, 2)).cuda()
    assert scripted(torch.ones(1, 2).cuda()).is_cuda
