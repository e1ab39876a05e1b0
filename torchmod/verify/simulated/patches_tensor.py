"""The attributes and methods of tensors that say where a tensor is, or take it elsewhere."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function_unary

from torchmod.verify.simulated.legacy_types import legacy_type
from torchmod.verify.simulated.machine import Index, machine
from torchmod.verify.simulated.modes import PINNED
from torchmod.verify.simulated.moves import move, on_device, refuse_meta
from torchmod.verify.simulated.patching import replace
from torchmod.verify.simulated.tags import device_at, index_for, index_of, settle, type_name

_base: Any = torch._C.TensorBase
_array: Any = Tensor.__array__
_parse_to = torch._C._nn._parse_to
_grad: Any = Tensor.grad
_share_memory: Any = Tensor.share_memory_
_is_shared: Any = Tensor.is_shared


def overridable(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method as those of torch are: modes and subclasses see the call first."""

    @functools.wraps(function)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if has_torch_function_unary(self):
            return handle_torch_function(method, (self,), self, *args, **kwargs)
        return function(self, *args, **kwargs)

    return method


def install() -> None:
    replace(
        Tensor,
        device=property(device),
        is_cuda=property(is_cuda),
        is_cpu=property(is_cpu),
        grad=property(get_grad, set_grad, _grad.__delete__),
        get_device=get_device,
        is_pinned=is_pinned,
        is_shared=is_shared,
        record_stream=record_stream,
    )
    methods = (to, cuda, cpu, type_as, new, new_tensor, numpy, __array__, pin_memory, share_memory_, apply_, map_)
    replace(Tensor, type=overridable(to_type), **{method.__name__: overridable(method) for method in methods})
    replace(torch._C._nn, _parse_to=parse_to)


# where it is


def device(self: Tensor) -> torch.device:
    index = index_of(self)
    found: torch.device = _base.device.__get__(self) if index is None else torch.device("cuda", index)
    return found


def is_cuda(self: Tensor) -> bool:
    return index_of(self) is not None


def is_cpu(self: Tensor) -> bool:
    return index_of(self) is None and bool(_base.is_cpu.__get__(self))


def get_device(self: Tensor) -> int:
    index = index_of(self)
    return -1 if index is None else index


def is_pinned(self: Tensor, device: Any = None) -> bool:
    return bool(getattr(self.untyped_storage(), PINNED, False))


def is_shared(self: Tensor) -> bool:
    return index_of(self) is not None or _is_shared(self)


def record_stream(self: Tensor, stream: Any) -> None:
    """Nothing: there is no stream in which something could still be running."""


def apply_(self: Tensor, function: Any) -> Tensor:
    return on_cpu_only(self, "apply_")(self, function)  # type: ignore[no-any-return]


def map_(self: Tensor, other: Tensor, function: Any) -> Tensor:
    return on_cpu_only(self, "map_")(self, other, function)  # type: ignore[no-any-return]


def on_cpu_only(self: Tensor, name: str) -> Any:
    """The method of torch; raises as it does on a device."""
    if index_of(self) is not None:
        raise TypeError(f"{name} is only implemented on CPU tensors")
    return getattr(_base, name)


def get_grad(self: Tensor) -> Tensor | None:
    gradient: Tensor | None = _grad.__get__(self)
    settle(gradient, index_of(self))
    return gradient


def set_grad(self: Tensor, value: Tensor | None) -> None:
    if isinstance(value, Tensor) and index_of(value) != index_of(self):
        here, there = device_at(index_of(self)), device_at(index_of(value))
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{there.type}' to a tensor with device type "
            f"'{here.type}'. Please ensure that the gradient and the tensor are on the same device"
        )
    _grad.__set__(self, value)


# elsewhere


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    place = args[0] if args else kwargs.get("device")
    if isinstance(place, str | torch.device) and torch.device(place).type not in ("cpu", "cuda"):
        elsewhere: Tensor = _base.to(self, *args, **kwargs)
        return elsewhere
    index, dtype, copy, memory_format = target_of(self, args, kwargs)
    return move(self, index, dtype, copy=copy, memory_format=memory_format)


def target_of(self: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Index, torch.dtype, bool, Any]:
    """What the arguments of `to` ask for: device, dtype, whether to copy in any case, memory format."""
    place_of_copy = 2 if args and isinstance(args[0], Tensor | torch.dtype) else 3
    copy = args[place_of_copy] if len(args) > place_of_copy else kwargs.get("copy", False)
    rest = {name: value for name, value in kwargs.items() if name != "copy"}
    place, dtype, _, memory_format = parse_to(*args[:place_of_copy], **rest)
    if place is not None and place.type != "meta":
        refuse_meta(self)
    index = index_of(self) if place is None else index_for(place)
    return index, dtype or self.dtype, copy, memory_format or torch.preserve_format


def parse_to(*args: Any, **kwargs: Any) -> tuple[torch.device | None, torch.dtype | None, bool, Any]:
    """The arguments of `to`, read; where C++ would look at the device of a tensor, or at a number."""
    first = args[0] if args else kwargs.get("device", kwargs.get("other"))
    if isinstance(first, Tensor):
        return first.device, first.dtype, False, kwargs.get("memory_format")
    if isinstance(first, int) and not isinstance(first, bool):
        args, kwargs = (torch.device("cuda", first), *args[1:]), {k: v for k, v in kwargs.items() if k != "device"}
    read: tuple[torch.device | None, torch.dtype | None, bool, Any] = _parse_to(*args, **kwargs)
    return read


def cuda(
    self: Tensor,
    device: Any = None,
    non_blocking: bool = False,
    memory_format: torch.memory_format = torch.preserve_format,
) -> Tensor:
    index = index_of(self) if device is None else index_for(device)
    return move(self, machine.local.current if index is None else index, memory_format=memory_format)


def cpu(self: Tensor, memory_format: torch.memory_format = torch.preserve_format) -> Tensor:
    refuse_meta(self)
    return move(self, None, memory_format=memory_format)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    return move(self, index_of(other), other.dtype)


def to_type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    if dtype is None:
        return type_name(self)
    if isinstance(dtype, torch.dtype):
        return move(self, index_of(self), dtype)
    kind = legacy_type(dtype)
    if not kind.is_cuda:
        return move(self, None, kind.dtype)
    return move(self, machine.local.current if index_of(self) is None else index_of(self), kind.dtype)


def new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    index = index_of(self) if device is None else index_for(device)
    if self.is_sparse:  # its parts say where it is
        made: Tensor = _base.new(self, *args)
        return made
    if args and isinstance(args[0], Tensor):
        if type_name(args[0]) != type_name(self):
            raise TypeError(f"expected {type_name(self)} (got {type_name(args[0])})")
        return args[0].detach()
    with machine.untracked():
        return on_device(_base.new(self, *args), index)


def new_tensor(self: Tensor, data: Any, *, device: Any = None, **kwargs: Any) -> Tensor:
    index = index_of(self) if device is None else index_for(device)
    with machine.untracked():
        return on_device(_base.new_tensor(self, data, **kwargs), index)


def numpy(self: Tensor, *, force: bool = False) -> Any:
    if force:
        return _base.numpy(cpu(self), force=True)
    refuse_numpy(self)
    return _base.numpy(self)


def __array__(self: Tensor, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
    refuse_numpy(self)
    return _array(self, *args, **kwargs)


def refuse_numpy(self: Tensor) -> None:
    if index_of(self) is not None:
        raise TypeError(
            f"can't convert {device_at(index_of(self))} device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    if index_of(self) is not None:
        raise RuntimeError(f"cannot pin '{type_name(self)}' only dense CPU tensors can be pinned")
    pinned = self if is_pinned(self) else self.clone()
    setattr(pinned.untyped_storage(), PINNED, True)
    return pinned


def share_memory_(self: Tensor) -> Tensor:
    return self if index_of(self) is not None else _share_memory(self)
