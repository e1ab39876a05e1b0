"""The backward pass: what it calls back works on devices too, and every gradient has to be where its tensor is.

The engine of autograd is C++ and takes all for the CPU. What it makes itself belongs wherever it is used.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchmod.verify.simulated.machine import Index, machine
from torchmod.verify.simulated.modes import Ambient
from torchmod.verify.simulated.moves import move
from torchmod.verify.simulated.patches_tensor import overridable
from torchmod.verify.simulated.patching import replace
from torchmod.verify.simulated.placement import tensors_in
from torchmod.verify.simulated.tags import device_at, index_of, settle

autograd: Any = torch.autograd
_engine: Callable[..., Any] = autograd._engine_run_backward
_apply: Any = autograd.Function.__dict__["apply"]
_register_hook: Callable[..., Any] = Tensor.register_hook
Gradients = tuple[Tensor | None, ...]


def install() -> None:
    replace(autograd, _engine_run_backward=run_backward)
    replace(autograd.Function, apply=classmethod(apply))
    replace(Tensor, register_hook=overridable(register_hook))


@functools.wraps(_engine)
def run_backward(roots: Sequence[Any], gradients: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
    """Run the engine, with the outer mode for what it calls back, on the device of the first root."""
    places = [root_place(root, gradient) for root, gradient in zip(roots, gradients, strict=True)]
    gradients = placed(gradients, places, "")
    local = machine.local
    before = local.in_call, local.ambient, local.in_engine
    local.in_call, local.ambient, local.in_engine = True, next(iter(places), None), True
    try:
        with Ambient():
            found = _engine(roots, gradients, *args, **kwargs)
    finally:
        local.in_call, local.ambient, local.in_engine = before
    for gradient, wanted in zip(found or (), args[2] if len(args) > 2 else (), strict=False):
        if isinstance(wanted, Tensor):
            settle(gradient, index_of(wanted))
    return found


def root_place(root: Any, gradient: Tensor | None) -> Index:
    """The device of a tensor that is differentiated; an edge of the graph is where its gradient is."""
    known = root if isinstance(root, Tensor) else gradient
    return None if known is None else index_of(known)


def placed(gradients: Sequence[Tensor | None], places: Sequence[Index], whose: str) -> Gradients:
    """The gradients, where they belong: one without dimensions is taken there, another one has to be there."""
    found: list[Tensor | None] = []
    for number, (gradient, index) in enumerate(zip(gradients, places, strict=False)):
        settle(gradient, index)
        if gradient is None or index_of(gradient) == index:
            found.append(gradient)
        elif not gradient.dim():
            found.append(move(gradient, index))
        else:
            raise RuntimeError(
                f"{whose}invalid gradient at index {number} - expected device {device_at(index)} "
                f"but got {device_at(index_of(gradient))}"
            )
    return tuple(found)


def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """``Function.apply``: the gradients that an own function gives are looked at."""
    result = _apply.__func__(cls, *args, **kwargs)
    node = next((tensor.grad_fn for tensor in tensors_in(result) if tensor.grad_fn is not None), None)
    if isinstance(node, cls._backward_cls):
        places = [index_of(argument) for argument in args if isinstance(argument, Tensor)]
        whose = f"Function {cls.__name__}Backward returned an "
        node.register_hook(lambda gradients, _: placed(gradients, places, whose))
    return result


def register_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> Any:
    """A hook on a tensor, which may change a gradient but not where it is."""

    @functools.wraps(hook)
    def checked(gradient: Tensor) -> Any:
        changed = hook(gradient)
        if isinstance(changed, Tensor) and index_of(changed) != index_of(gradient):
            kinds = ["CPU" if index_of(one) is None else "CUDA" for one in (gradient, changed)]
            name = getattr(hook, "__name__", type(hook).__name__)
            raise RuntimeError(
                f"hook '{name}' has changed the type of value (was {kinds[0]} tensor got {kinds[1]} tensor)"
            )
        return changed

    return _register_hook(self, checked)
