"""What has to be known of single operators: which arguments need not be on the device of the others."""

from __future__ import annotations

import torch
from torch._ops import OpOverload

aten = torch.ops.aten

COPIES = {
    aten._has_compatible_shallow_copy_type.default,
    aten.copy_.default,
    aten.copy.default,
    aten._copy_from.default,
    aten._foreach_copy_.default,
}
"""Operators that take from any device."""
INDEXING = {
    aten.index.Tensor,
    aten._unsafe_index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
    aten._unsafe_index_put.default,
}
LIKE = {
    aten.zeros_like.default,
    aten.ones_like.default,
    aten.empty_like.default,
    aten.full_like.default,
    aten.rand_like.default,
    aten.randn_like.default,
    aten.randint_like.default,
    aten.randint_like.low_dtype,
    aten.new_zeros.default,
    aten.new_ones.default,
    aten.new_empty.default,
    aten.new_full.default,
    aten.new_empty_strided.default,
}
"""Operators that make a tensor after the image of another, on its device if no other is named."""
CONVOLUTIONS = {aten.convolution.default, aten.convolution_overrideable.default}
HOST_ARGUMENTS = {
    **{operator: {1} for operator in INDEXING},
    aten._pack_padded_sequence.default: {1},
}
"""Arguments that may be on the CPU while the others are on a device."""
HOST_RESULTS = {aten._pack_padded_sequence.default: {1}}
"""Results that are on the CPU in any case."""
NUMBERS: dict[str, set[int]] = {
    "fill": {1},
    "bernoulli": {1},
    "index_put": {2},
    "_index_put_impl": {2},
    "_unsafe_index_put": {2},
    "index_fill": {3},
    "linspace": {0, 1},
    "logspace": {0, 1},
}
"""Arguments that are read as a number when they have no dimensions, wherever they are."""
SCALARS: dict[str, set[int]] = {"masked_fill": {2}, "binary_cross_entropy_with_logits": {2, 3}}
"""Arguments that may be on the CPU when they have no dimensions."""
POINTWISE = {"allclose", "dist", "floor_divide", "normal", "rsub"}
"""Operators all of whose arguments may, though torch does not mark them as pointwise."""
NOT_POINTWISE = {"equal"}
POINTWISE_PREFIXES = ("_foreach_", "_fused_")
FLOATING_KERNELS = {
    **dict.fromkeys(("mm", "addmm", "addbmm"), "addmm_cuda"),
    **dict.fromkeys(("bmm", "baddbmm"), "baddbmm_cuda"),
    **dict.fromkeys(("mv", "addmv"), "addmv_impl_cuda"),
    **dict.fromkeys(("dot", "vdot"), "dot"),
}
"""Operators that CUDA does not have for integers, by name, and the name of the kernel that lacks them."""


def base_name(operator: OpOverload) -> str:
    """The name of an operator, the same for that which works in place; ``__and__`` is a name of its own."""
    name = operator._schema.name.partition("::")[2]
    return name if name.endswith("__") else name.removesuffix("_")


def scalar_arguments(operator: OpOverload) -> set[int]:
    """The arguments that may be on the CPU, when they have no dimensions, while the others are on a device."""
    name = base_name(operator)
    if name in SCALARS:
        return SCALARS[name]
    return set(range(len(operator._schema.arguments))) if is_pointwise(operator, name) else set()


def is_pointwise(operator: OpOverload, name: str) -> bool:
    if name in NOT_POINTWISE:
        return False
    if name in POINTWISE or name.startswith(POINTWISE_PREFIXES):
        return True
    packet = getattr(torch.ops.aten, name, None) if operator.namespace == "aten" else None
    functional = getattr(packet, operator._overloadname, None)  # torch marks few of those that work in place
    return torch.Tag.pointwise in operator.tags or torch.Tag.pointwise in getattr(functional, "tags", ())
