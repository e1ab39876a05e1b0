"""Mixed precision on the simulated device, by the names of functions.

C++ applies CUDA's own lists only to tensors that it sees on CUDA. So what runs in lower precision is left to the lists
of the CPU, which agree in that, while what CUDA runs in float32 or in the widest dtype is cast here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchmod.verify.simulated.adapting import without_mkldnn
from torchmod.verify.simulated.tags import index_of

HALVES = (torch.float16, torch.bfloat16)


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SINGLE = words(
    """
    __pow__ __rdiv__ __rpow__ __rtruediv__ acos asin binary_cross_entropy_with_logits cdist cosh cosine_embedding_loss
    cosine_similarity cross_entropy cumprod cumsum dist erfinv exp expm1 group_norm hinge_embedding_loss huber_loss
    interpolate kl_div l1_loss layer_norm log log10 log1p log2 log_softmax logsumexp margin_ranking_loss matrix_norm
    mse_loss multi_margin_loss multilabel_margin_loss nll_loss norm normalize pdist poisson_nll_loss pow prod reciprocal
    renorm rms_norm rsqrt sinh smooth_l1_loss soft_margin_loss softmax softmin softplus sum tan triplet_margin_loss
    upsample vector_norm
    """
)
"""What CUDA runs in float32."""
WIDEST = words("addcdiv addcmul atan2 bilinear cross dot grid_sample index_put scatter_add tensordot vdot")
"""What CUDA runs in the widest dtype of the operands."""
UNCHANGED = words("adaptive_avg_pool3d avg_pool3d max_pool3d max_unpool2d max_unpool3d pad trace")
"""What CUDA runs in the dtype that comes in, and the CPU would not."""
RECURRENT = words("gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell")
UNSAFE = "binary_cross_entropy"


def is_on() -> bool:
    """Whether a call for a device has to be looked at: also under the CPU's autocast, which is not for devices."""
    return torch.is_autocast_enabled("cuda") or torch.is_autocast_enabled("cpu")


def call(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of torch, for a device, as under CUDA's autocast if that is on."""
    if not torch.is_autocast_enabled("cuda"):
        return with_lower_precision(func, args, kwargs, enabled=False)
    name = getattr(func, "__name__", "")
    if name == UNSAFE:
        raise RuntimeError(
            "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
            "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
            "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
            "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
            "safe to autocast."
        )
    if "out" in kwargs or name in UNCHANGED:
        return with_lower_precision(func, args, kwargs, enabled=False)
    if name in RECURRENT:
        half = torch.get_autocast_dtype("cuda")
        return without_mkldnn(func, cast(args, (torch.float32,), half), cast(kwargs, (torch.float32,), half))
    if name in SINGLE or (name in WIDEST and has_single(args)):
        args, kwargs = cast(args, HALVES, torch.float32), cast(kwargs, HALVES, torch.float32)
        return with_lower_precision(func, args, kwargs, enabled=False)
    return with_lower_precision(func, args, kwargs, enabled=True)


def with_lower_precision(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, enabled: bool
) -> Any:
    """Call a function with the CPU's autocast, in the dtype of CUDA's, or without it."""
    before = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    torch.set_autocast_enabled("cpu", enabled)
    torch.set_autocast_dtype("cpu", torch.get_autocast_dtype("cuda"))
    try:
        return func(*args, **kwargs)
    finally:
        torch.set_autocast_enabled("cpu", before[0])
        torch.set_autocast_dtype("cpu", before[1])


def cast(value: Any, dtypes: tuple[torch.dtype, ...], dtype: torch.dtype) -> Any:
    """The arguments, with what is on a device in one of the dtypes in another one."""
    if isinstance(value, Tensor):
        return value.to(dtype) if value.dtype in dtypes and index_of(value) is not None else value
    if type(value) in (list, tuple):
        return type(value)(cast(item, dtypes, dtype) for item in value)
    if isinstance(value, dict):
        return {key: cast(item, dtypes, dtype) for key, item in value.items()}
    return value


def has_single(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(has_single(item) for item in value)
    return isinstance(value, Tensor) and value.dtype is torch.float32
