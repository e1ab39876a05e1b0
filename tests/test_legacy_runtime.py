"""Old code means what it meant then, and nothing else changes."""

import ast
import io
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: there is no old meaning to give back")

import torch
from torch import nn

from torchmod.verify import simulated
from torchmod.verify.legacy import fired, legacy_runtime, modernise
from torchmod.verify.trace import Status
from torchmod.verify.zygote import CAN_FORK, run_function

UNTIL_1_1 = {
    # division
    "torch.tensor([5, -5]) / 2": "tensor([ 2, -2])",
    "torch.tensor([5, -5]) / 2.5": "tensor([ 2, -2])",
    "7 / torch.tensor([2, -2])": "tensor([ 3, -3])",
    "torch.tensor([5, -5]).div_(2)": "tensor([ 2, -2])",
    "torch.tensor([5, 7]) / torch.tensor(2.5)": "tensor([2, 3])",
    "torch.tensor([5., 7]) / torch.tensor(2)": "tensor([2.5000, 3.5000])",
    "torch.tensor(7) / 2": "tensor(3)",
    "torch.tensor([5, -5]) // 2": "tensor([ 2, -2])",
    "torch.tensor([-5.]) // 2": "tensor([-2.])",
    "7 // torch.tensor([2, -2])": "tensor([ 3, -3])",
    "torch.ByteTensor([1, 3]) / 2": "tensor([0, 1], dtype=torch.uint8)",
    "100. * torch.tensor(5) / 7": "tensor(71)",
    # numbers beside integers
    "torch.tensor([5]) * 1.5": "tensor([5])",
    "torch.tensor([-5]) * 1.5": "tensor([-5])",
    "1.5 - torch.tensor([5])": "tensor([-4])",
    "torch.tensor([5]).add_(1.5)": "tensor([6])",
    "torch.tensor([5]) + torch.tensor(1.5)": "tensor([6])",
    "torch.tensor(5) * torch.tensor(1.5)": "tensor(7.5000)",
    "torch.tensor([4, 9]) ** 2.9": "tensor([16, 81])",
    "torch.tensor([4, 5]) < 4.5": "tensor([0, 0], dtype=torch.uint8)",
    # comparisons and masks
    "torch.tensor([1., 2]) > 1": "tensor([0, 1], dtype=torch.uint8)",
    "1 - (torch.tensor([1., 2]) > 1)": "tensor([1, 0], dtype=torch.uint8)",
    "~(torch.tensor([1., 2]) > 1)": "tensor([1, 0], dtype=torch.uint8)",
    "-(torch.tensor([1., 2]) > 1)": "tensor([  0, 255], dtype=torch.uint8)",
    "(torch.tensor([1., 2]) > 1) + (torch.tensor([1., 2]) > 0)": "tensor([1, 2], dtype=torch.uint8)",
    "(torch.tensor([1., 2]) > 1) & (torch.tensor([1., 2]) > 0)": "tensor([0, 1], dtype=torch.uint8)",
    "torch.isnan(torch.ones(1))": "tensor([0], dtype=torch.uint8)",
    "(torch.tensor([1., 2]) > 1).sum()": "tensor(1)",
    "(torch.tensor([1., 2]) > 1).all()": "tensor(0, dtype=torch.uint8)",
    "torch.zeros(2).masked_fill_(torch.ByteTensor([1, 0]), 5)": "tensor([5., 0.])",
    "torch.zeros(2).masked_fill(1 - (torch.tensor([1., 2]) > 1), 5)": "tensor([5., 0.])",
    "torch.tensor([1., 2]).masked_select(torch.tensor([1., 2]) > 1)": "tensor([2.])",
    "torch.where(torch.ByteTensor([1, 0]), torch.zeros(2), torch.ones(2))": "tensor([0., 1.])",
    "torch.arange(4.)[torch.ByteTensor([1, 0, 0, 1])]": "tensor([0., 3.])",
}
"""What the real torch 1.1.0 prints for each expression."""
UNTIL_1_4 = {
    "torch.tensor([5, -5]) / 2": "tensor([ 2, -2])",
    "torch.tensor([5, -5]) / 2.5": "tensor([ 2., -2.])",
    "torch.tensor([5, -5]) // 2": "tensor([ 2, -2])",
    "torch.tensor([-5.]) // 2": "tensor([-2.])",
    "torch.tensor([5]) * 1.5": "tensor([7.5000])",
    "torch.tensor([1., 2]) > 1": "tensor([False,  True])",
    "torch.zeros(2).masked_fill_(torch.ByteTensor([1, 0]), 5)": "tensor([5., 0.])",
}
"""The same of torch 1.4.0."""


@pytest.fixture
def old() -> Iterator[None]:
    with legacy_runtime("0.3"):
        yield


@pytest.mark.parametrize("expression", UNTIL_1_1)
def test_1_1_gives_what_torch_1_1_gave(expression: str) -> None:
    with legacy_runtime("1.1"):
        assert repr(eval(expression)) == UNTIL_1_1[expression]


@pytest.mark.parametrize("expression", UNTIL_1_4)
def test_1_4_gives_what_torch_1_4_gave(expression: str) -> None:
    with legacy_runtime("1.4"):
        assert repr(eval(expression)) == UNTIL_1_4[expression]


def test_operators_in_place_change_their_tensor() -> None:
    with legacy_runtime("1.1"):
        tensor = torch.tensor([5, -5])
        same = tensor
        tensor /= 2
        tensor *= 2.9
        assert tensor is same
        assert tensor.tolist() == [4, -4]
        tensor[torch.ByteTensor([1, 0])] = 9
        assert tensor.tolist() == [9, -4]


def test_what_was_emulated_is_counted() -> None:
    with legacy_runtime("1.1") as counts:
        assert not counts
        _ = 1 - (torch.ones(2) > 0)
        _ = torch.tensor([3]) / 2
        _ = torch.ones(2) / 2
    assert counts is fired
    assert dict(counts) == {"comparison gives bytes": 1, "division of integers cuts off": 1}


def test_an_unknown_profile_names_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"0\.3, 1\.1, 1\.4"), legacy_runtime("0.5"):
        pass


@pytest.mark.parametrize("profile", ["0.3", "1.1", "1.4"])
def test_afterwards_everything_is_as_before(profile: str) -> None:
    variable = torch.autograd.Variable
    with legacy_runtime(profile):
        pass
    assert (torch.ones(1) > 0).dtype is torch.bool
    assert (torch.tensor([5]) / 2).item() == 2.5
    assert torch.autograd.Variable is variable
    assert "volatile" not in vars(torch.Tensor)
    assert all(isinstance(part, torch.Tensor) for part in torch.ones(2))


# 0.3: no such torch can be installed, so this is what its documentation says


@pytest.mark.usefixtures("old")
def test_an_element_of_data_is_a_number_and_an_element_of_a_variable_is_none() -> None:
    loss = nn.Linear(2, 1)(torch.ones(4, 2)).sum()
    for value in (loss.data[0], loss.data.cpu()[0], loss.data.cpu().numpy()[0], loss.data.tolist()[0]):
        assert isinstance(value, float) or value.dtype.name == "float32"
        assert float(value) == pytest.approx(loss.item())
    assert loss[0] is loss
    assert isinstance(torch.ones(3)[1], float)
    assert list(torch.ones(2)) == [1.0, 1.0]
    assert isinstance(torch.ones(2, 3)[1], torch.Tensor)


@pytest.mark.usefixtures("old")
def test_a_loss_has_one_element_in_one_dimension() -> None:
    loss = nn.Linear(2, 1)(torch.ones(4, 2)).sum()
    assert loss.size() == torch.Size([1])
    assert loss.size(0) == len(loss) == 1
    assert torch.cat([loss, loss]).size() == torch.Size([2])


@pytest.mark.usefixtures("old")
def test_a_reduction_of_a_plain_tensor_is_a_number() -> None:
    output = nn.Linear(2, 3)(torch.ones(4, 2))
    predicted = output.data.max(1)[1]
    correct = predicted.eq(predicted).cpu().sum()
    assert type(correct) is int
    assert 100.0 * correct / 8 == 50.0
    assert isinstance(output.sum(), torch.Tensor)
    assert isinstance(output.data.sum(1), torch.Tensor)


@pytest.mark.usefixtures("old")
def test_volatile_spreads_and_wins() -> None:
    from torch.autograd import Variable

    module = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.BatchNorm1d(3))
    inputs = Variable(torch.ones(4, 2), volatile=True)
    outputs = module(inputs)
    assert not outputs.requires_grad
    assert outputs.volatile
    assert (outputs + Variable(torch.ones(3))).volatile
    assert (outputs * module[0].bias).grad_fn is None
    assert not outputs.data.volatile
    trained = module(Variable(torch.ones(4, 2)))
    assert trained.requires_grad
    assert not trained.volatile


@pytest.mark.usefixtures("old")
def test_volatile_can_be_set_and_taken_back() -> None:
    from torch.autograd import Variable

    inputs, weight = Variable(torch.ones(2)), nn.Parameter(torch.ones(2))
    inputs.volatile = True
    assert not (inputs * weight).requires_grad
    inputs.volatile = False
    assert (inputs * weight).requires_grad


@pytest.mark.usefixtures("old")
def test_variables_and_tensors_are_two_things() -> None:
    from torch.autograd import Variable

    plain = torch.ones(2)
    variable = Variable(plain)
    assert isinstance(variable, Variable)
    assert isinstance(variable + 1, Variable)
    assert isinstance(nn.Parameter(plain), Variable)
    assert not isinstance(plain, Variable)
    assert not isinstance(variable.data, Variable)
    variable[0] = 5
    assert plain[0] == 5, "a Variable shares its tensor"
    with pytest.raises(RuntimeError, match="volatile and require_grad"):
        Variable(plain, requires_grad=True, volatile=True)


@pytest.mark.usefixtures("old")
def test_torch_itself_means_what_it_means_today() -> None:
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    optimizer = torch.optim.Adam(module.parameters())
    module(torch.ones(4, 2)).sum().backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(module.parameters(), 1.0, error_if_nonfinite=True)
    file = io.BytesIO()
    torch.save((module.state_dict(), optimizer.state_dict()), file)
    file.seek(0)
    state, steps = torch.load(file)
    assert state["1.num_batches_tracked"].shape == torch.Size([])
    assert steps["state"][0]["step"].shape == torch.Size([])
    assert repr(torch.ones(2)) == "tensor([1., 1.])"


def test_async_becomes_non_blocking_where_it_is_an_argument() -> None:
    source = (
        "x = x.cuda(async=True)\ny.copy_(x, # async=1\n    async = flag)\nf(\n  # note\n  async=1)\ns = 'async=1'\n"
    )
    assert modernise(source) == source.replace("async=True", "non_blocking=True").replace(
        "    async = flag", "    non_blocking = flag"
    ).replace("  async=1)", "  non_blocking=1)")
    ast.parse(modernise(source))


@pytest.mark.parametrize("source", ["async def f():\n    async with a: pass\n", "x = 1\n", "s = 'async=True'"])
def test_other_source_is_left_alone(source: str) -> None:
    assert modernise(source) == source


# together with the simulated device


def on_device(profile: str, source: str) -> dict[str, Any]:
    """The plain values that a program leaves in ``result``, run as old code on the simulated device."""
    simulated.install()
    names: dict[str, Any] = {"__name__": "__main__", "torch": torch, "nn": nn}
    with legacy_runtime(profile):
        exec(modernise(source), names)
    return names["result"]


@pytest.mark.skipif(not CAN_FORK, reason="there is no fork here: the simulated device would stay in this process")
@pytest.mark.parametrize(
    ("profile", "source", "expected"),
    [
        ("0.3", "result = nn.Linear(2, 1).cuda()(torch.ones(1, 2).cuda(async=True)).sum().data[0] != 0", True),
        (
            "0.3",
            "x = torch.autograd.Variable(torch.ones(1, 2), volatile=True).cuda()\n"
            "y = nn.Linear(2, 1).cuda()(x)\nresult = [x.volatile, y.volatile, y.requires_grad, y.is_cuda]",
            [True, True, False, True],
        ),
        ("0.3", "x = torch.ones(3).cuda()\nresult = [x.sum(), x[0], x.eq(1).sum()]", [3.0, 1.0, 3]),
        (
            "1.1",
            "x = torch.tensor([5, -5]).cuda()\nm = 1 - (x > 0)\n"
            "result = [(x / 2).tolist(), (7 // x).tolist(), m.tolist(), m.is_cuda, str(m.dtype), x[m].tolist()]",
            [[2, -2], [1, -1], [0, 1], True, "torch.uint8", [-5]],
        ),
    ],
)
def test_old_meaning_holds_on_the_simulated_device(profile: str, source: str, expected: object) -> None:
    ended = run_function(partial(on_device, profile, source))
    assert ended.status is Status.RAN, ended.reason
    assert ended.value == expected
