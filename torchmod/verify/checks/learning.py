"""Gradients and optimizers on a device."""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from torchmod.verify.checks.expecting import APART, on_cuda, raises


def optimizers_take_steps() -> None:
    torch.manual_seed(0)
    layers = nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.5), nn.Linear(2, 3)
    module = nn.Sequential(*layers).cuda()
    kinds: tuple[Any, ...] = (torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop, torch.optim.AdamW)
    for kind in kinds:
        optimizer = kind(module.parameters(), lr=0.01)
        weight = next(module.parameters())
        before = weight.detach().clone()
        for _ in range(2):
            optimizer.zero_grad()
            loss = F.cross_entropy(module(torch.randn(4, 1, 4, 4).cuda()), torch.tensor([0, 1, 2, 0]).cuda())
            loss.backward()
            assert on_cuda(loss, *(parameter.grad for parameter in module.parameters()))
            torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimizer.step()
        assert not torch.equal(before, weight)


def the_state_of_an_optimizer_is_on_the_device() -> None:
    module = nn.Linear(2, 2).cuda()
    optimizer = torch.optim.Adam(module.parameters())
    module(torch.ones(1, 2).cuda()).sum().backward()
    optimizer.step()
    again = torch.optim.Adam(module.parameters())
    again.load_state_dict(optimizer.state_dict())
    for state in (*optimizer.state.values(), *again.state.values()):
        assert on_cuda(state["exp_avg"], state["exp_avg_sq"])


def sparse_gradients_are_applied() -> None:
    embedding = nn.Embedding(5, 2, sparse=True).cuda()
    before = embedding.weight.detach().clone()
    optimizer = torch.optim.SparseAdam(list(embedding.parameters()))
    embedding(torch.tensor([1, 2]).cuda()).sum().backward()
    assert on_cuda(embedding.weight.grad)
    optimizer.step()
    assert not torch.equal(before, embedding.weight)


def an_own_function_is_differentiated() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Tensor) -> tuple[Tensor, Tensor]:
            ctx.save_for_backward(value)
            return value * value, value + 1

        @staticmethod
        def backward(ctx: Any, first: Tensor, second: Tensor) -> Any:
            (value,) = ctx.saved_tensors
            return 2 * value * first + second

    leaf = torch.ones(3, device="cuda", requires_grad=True)
    result, _ = Square.apply(leaf)  # type: ignore[no-untyped-call]
    result.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.is_cuda
    assert leaf.grad.tolist() == [2, 2, 2]


def what_a_hook_makes_is_on_the_cpu() -> None:
    seen: list[tuple[bool, bool]] = []
    leaf = torch.ones(2, device="cuda", requires_grad=True)
    leaf.register_hook(lambda gradient: seen.append((gradient.is_cuda, torch.zeros(1).is_cuda)))
    (leaf * 2).sum().backward()
    assert seen == [(True, False)]


def a_hook_mixes_devices_as_little_as_other_code() -> None:
    leaf = torch.ones(3, device="cuda", requires_grad=True)
    for change in (lambda gradient: gradient * torch.ones(3), lambda gradient: gradient + gradient.cpu()):
        doubled = leaf * 2
        doubled.register_hook(change)
        raises(RuntimeError, APART, doubled.sum().backward)
    leaf.register_hook(lambda gradient: gradient * torch.tensor(2.0))
    leaf.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [2, 2, 2]


def a_hook_leaves_a_gradient_where_it_is() -> None:
    leaf = torch.ones(3, device="cuda", requires_grad=True)
    leaf.register_hook(lambda gradient: gradient.cpu())
    raises(RuntimeError, "has changed the type of value", leaf.sum().backward)


def a_gradient_comes_from_the_device_of_its_tensor() -> None:
    leaf = torch.ones(3, device="cuda", requires_grad=True)
    raises(RuntimeError, "expected device cuda:0 but got cpu", lambda: (leaf * 2).backward(torch.ones(3)))
    raises(RuntimeError, "expected device", lambda: torch.autograd.grad(leaf * 2, leaf, torch.ones(3)))
    leaf.sum().backward(torch.tensor(2.0))
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [2, 2, 2]
    assert leaf.grad.is_cuda


def an_own_function_gives_gradients_on_the_device_of_its_inputs() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Tensor, change: Any) -> Tensor:
            ctx.change = change
            return value * 2

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            return ctx.change(gradient), None

    def grad(change: Any) -> Tensor | None:
        leaf = torch.ones(3, device="cuda", requires_grad=True)
        Double.apply(leaf, change).sum().backward()  # type: ignore[no-untyped-call]
        return leaf.grad

    raises(RuntimeError, APART, lambda: grad(lambda gradient: gradient * torch.ones(3)))
    raises(RuntimeError, "expected device cuda:0 but got cpu", lambda: grad(lambda gradient: torch.ones(3)))
    found = grad(lambda gradient: gradient * torch.tensor(2.0))
    assert found is not None
    assert found.tolist() == [2, 2, 2]


def gradients_cross_devices_where_the_tensors_did() -> None:
    """Where the engine makes zeros, for outputs that are not used, they belong to either side."""
    for outside, inside in (("cpu", "cuda"), ("cuda", "cpu")):
        leaf = torch.arange(6.0, device=outside).view(2, 3).requires_grad_()
        first, second = leaf.to(inside).split(1)
        values, _ = first.sort()
        kept = (values[0, :2] * 3).to(outside)
        (kept.sum() + second.to(outside)[0, 1] + leaf.max(1)[0][0]).backward()
        assert leaf.grad is not None
        assert leaf.grad.device == leaf.device
        assert leaf.grad.tolist() == [[3, 3, 1], [0, 1, 0]]


def gradients_that_are_all_zero_are_on_the_device() -> None:
    leaf = torch.ones(2, 2, device="cuda", requires_grad=True)
    (leaf.sgn().cpu().sum() + leaf.trace().cpu()).backward()
    assert leaf.grad is not None
    assert leaf.grad.is_cuda
    assert leaf.grad.tolist() == [[1, 0], [0, 1]]
    (gradient,) = torch.autograd.grad(leaf.sgn().cpu().sum(), leaf)
    assert gradient.is_cuda


def gradients_have_gradients() -> None:
    leaf = torch.ones(3, device="cuda", requires_grad=True)
    (gradient,) = torch.autograd.grad((leaf**3).sum(), leaf, create_graph=True)
    gradient.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [6, 6, 6]
    assert leaf.grad.is_cuda


def a_move_has_second_gradients() -> None:
    leaf = torch.ones(3, requires_grad=True)
    (gradient,) = torch.autograd.grad((leaf.cuda() ** 3).sum(), leaf, create_graph=True)
    assert not gradient.is_cuda
    gradient.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [6, 6, 6]


def checkpointing_recomputes() -> None:
    module, inputs = nn.Linear(2, 2).cuda(), torch.ones(1, 2, device="cuda", requires_grad=True)
    for use_reentrant in (False, True):
        checkpoint(module, inputs, use_reentrant=use_reentrant).sum().backward()
        assert on_cuda(inputs.grad)
        assert on_cuda(module.weight.grad)


def function_transforms_run() -> None:
    there = torch.ones(3).cuda()
    assert torch.func.grad(lambda value: (value**2).sum())(there).is_cuda
    assert torch.func.vmap(torch.sum)(torch.ones(3, 2).cuda()).is_cuda
