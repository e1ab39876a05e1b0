"""Taking tensors to a device and back, and asking where they are."""

import copy
import pickle
from functools import partial

import torch
from torch import nn

from torchmod.verify.checks.expecting import on_cuda, raises, two_devices


def cuda_makes_a_copy() -> None:
    here = torch.ones(3)
    there = here.cuda()
    there += 1
    assert here.tolist() == [1, 1, 1]
    assert there.tolist() == [2, 2, 2]


def a_tensor_knows_its_device() -> None:
    here = torch.ones(3)
    there = here.cuda()
    assert str(here.device) == "cpu"
    assert there.device == torch.device("cuda:0")
    assert (there.device.type, there.device.index) == ("cuda", 0)


def is_cuda_and_get_device_answer() -> None:
    there = torch.ones(3).cuda()
    assert there.is_cuda is True
    assert there.get_device() == 0
    assert torch.ones(1).is_cuda is False
    assert torch.ones(1).get_device() == -1
    assert torch.ones(1).is_cpu
    assert not there.is_cpu


def moving_to_where_it_is_gives_the_same_object() -> None:
    there = torch.ones(3).cuda()
    assert there.cuda() is there
    assert there.to("cuda") is there
    assert there.to(torch.device("cuda", 0)) is there
    assert there.to("cuda", copy=True) is not there


def coming_back_makes_a_copy() -> None:
    there = torch.ones(3).cuda()
    here = there.cpu()
    here += 1
    assert not here.is_cuda
    assert there.tolist() == [1, 1, 1]
    assert not there.to("cpu").is_cuda


@two_devices
def a_tensor_goes_to_the_second_device() -> None:
    there = torch.ones(3).to("cuda:1")
    assert there.get_device() == 1
    assert str(there.device) == "cuda:1"
    assert there.cuda() is there
    assert there.cuda(0).get_device() == 0


def to_takes_a_tensor_a_dtype_and_a_number() -> None:
    there = torch.ones(3).to("cuda", torch.float64)
    other = torch.ones(2).to(there)
    assert other.is_cuda
    assert other.dtype == torch.float64
    assert there.double() is there
    assert on_cuda(there.half(), there.int(), torch.ones(1).to(0), torch.ones(1).to(device=0, dtype=torch.float16))
    assert nn.Linear(2, 2).to(0).weight.is_cuda
    assert nn.Linear(2, 2).to(there).weight.dtype == torch.float64


def to_takes_copy_and_memory_format_by_place_and_name() -> None:
    image = torch.rand(2, 3, 4, 4)
    there = image.to("cuda", torch.float32, False, True, memory_format=torch.channels_last)
    assert there.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(there.cpu(), image)
    assert image.transpose(2, 3).cuda().stride() == (48, 16, 1, 4)


def a_bad_ordinal_is_refused() -> None:
    raises(RuntimeError, "invalid device ordinal", lambda: torch.ones(2).to("cuda:77"))
    raises(RuntimeError, "invalid device ordinal", lambda: torch.zeros(2, device="cuda:77"))


def setting_data_moves_in_place() -> None:
    parameter = nn.Parameter(torch.ones(2))
    same = parameter
    parameter.data = parameter.data.cuda()
    assert same is parameter
    assert parameter.is_cuda
    assert isinstance(parameter, nn.Parameter)
    assert parameter.is_leaf


def the_copy_of_a_leaf_is_no_leaf() -> None:
    leaf = torch.ones(2, requires_grad=True)
    there = leaf.cuda()
    assert not there.is_leaf
    assert there.grad_fn is not None
    there.sum().backward()
    assert leaf.grad is not None
    assert not leaf.grad.is_cuda


def repr_shows_the_device() -> None:
    assert "device='cuda:0'" in repr(torch.ones(2).cuda())
    assert "cuda" not in repr(torch.ones(2))


def copies_stay_where_they_are() -> None:
    there = torch.arange(3.0).cuda()
    assert on_cuda(copy.deepcopy(there), copy.copy(there), pickle.loads(pickle.dumps(there)))
    assert copy.deepcopy(nn.Linear(2, 2).cuda()).weight.is_cuda
    assert copy.deepcopy(there).tolist() == [0, 1, 2]


def storages_know_their_device() -> None:
    storage = torch.ones(3).cuda().untyped_storage()
    assert storage.is_cuda
    assert storage.device == torch.device("cuda:0")
    assert not storage.cpu().is_cuda
    assert storage.cpu().cuda().is_cuda


def shared_memory_is_of_the_cpu() -> None:
    assert torch.ones(2).cuda().is_shared()
    assert not torch.ones(2).is_shared()
    assert torch.ones(2).share_memory_().is_shared()


def memory_is_pinned_on_the_cpu_only() -> None:
    pinned = torch.ones(2).pin_memory()
    assert pinned.is_pinned()
    assert pinned.cuda(non_blocking=True).is_cuda
    assert not torch.ones(2).is_pinned()
    raises(RuntimeError, "only dense CPU tensors can be pinned", lambda: torch.ones(2).cuda().pin_memory())


def a_meta_tensor_has_nothing_to_move() -> None:
    meta = torch.empty(2, device="meta")
    for where in ("cuda", "cpu"):
        raises(NotImplementedError, "Cannot copy out of meta tensor", partial(meta.to, where))
    raises(NotImplementedError, "Cannot copy out of meta tensor", meta.cuda)
    raises(NotImplementedError, "Cannot copy out of meta tensor", meta.cpu)
    assert meta.to(torch.float64).is_meta
    assert meta.to(meta).is_meta
    layer = nn.Linear(2, 2, device="meta")
    raises(NotImplementedError, "to_empty", lambda: layer.to("cuda"))
    assert on_cuda(*layer.to_empty(device="cuda").parameters())


def numpy_is_refused() -> None:
    import numpy as np

    text = "can't convert cuda:0 device type tensor to numpy"
    raises(TypeError, text, lambda: torch.ones(2).cuda().numpy())
    raises(TypeError, text, lambda: np.asarray(torch.ones(2).cuda()))
    assert torch.ones(2).cuda().cpu().numpy().sum() == 2


def a_sparse_tensor_moves() -> None:
    index = torch.tensor([[0, 1], [1, 0]])
    sparse = torch.sparse_coo_tensor(index, [1.0, 2.0], (2, 2)).cuda()
    assert on_cuda(sparse, sparse.to_dense(), sparse.coalesce().values(), sparse @ torch.ones(2, 1).cuda())
    assert not sparse.cpu().is_cuda
    assert torch.sparse_coo_tensor(index, [1.0, 2.0], (2, 2), device="cuda").is_cuda
