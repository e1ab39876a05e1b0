"""Making tensors on a device."""

from typing import Any

import torch

from torchmod.verify.checks.expecting import on_cuda, raises, two_devices

cuda: Any = torch.cuda
"""Its typed constructors are unknown to torch's own type stubs."""


def factories_take_a_device() -> None:
    import numpy as np

    assert on_cuda(
        torch.zeros(3, device="cuda"),
        torch.tensor([1.0, 2], device="cuda"),
        torch.arange(4, device=torch.device("cuda")),
        torch.randn(2, 2, device="cuda:0"),
        torch.full((2,), 3.0, device=0),
        torch.as_tensor(np.ones(3), device="cuda"),
        torch.empty(3, device="cuda").fill_(1),
        torch.eye(3, device="cuda"),
        torch.linspace(0, 1, 3, device="cuda"),
        torch.rand(2, device="cuda"),
        torch.randint(3, (2,), device="cuda"),
        torch.randperm(3, device="cuda"),
        torch.hann_window(4, device="cuda"),
        torch.tril_indices(3, 3, device="cuda"),
    )


def a_tensor_that_is_only_a_number_says_nothing_about_the_device() -> None:
    length: Any = torch.tensor([2, 3]).cuda().max()
    assert not torch.arange(length).is_cuda
    assert torch.arange(length, device=length.device).tolist() == [0, 1, 2]
    assert not torch.zeros(int(length)).is_cuda


def tensors_made_after_another_are_beside_it() -> None:
    there = torch.ones(3).cuda()
    assert on_cuda(
        torch.zeros_like(there),
        there.new_zeros(2),
        there.new_tensor([1.0, 2]),
        there.new(2, 3),
        there.new([1.0, 2]),
        there.clone(),
        there.detach(),
        there.data,
        there[0],
        there.view(3, 1),
        torch.rand_like(there),
        torch.tensor(there.tolist(), device=there.device),
    )
    assert not there.new_zeros(2, device="cpu").is_cuda
    assert not torch.zeros_like(there, device="cpu").is_cuda
    assert not torch.zeros(2).is_cuda


def as_tensor_shares_with_numpy_only_on_the_cpu() -> None:
    import numpy as np

    array = np.zeros(2)
    here, there = torch.as_tensor(array), torch.as_tensor(array, device="cuda")
    array += 1
    assert here.tolist() == [1, 1]
    assert there.tolist() == [0, 0]


def typed_constructors_make_tensors() -> None:
    made = cuda.FloatTensor(2, 3).fill_(0)
    assert made.is_cuda
    assert made.shape == (2, 3)
    assert made.dtype == torch.float32
    assert cuda.LongTensor([1, 2]).tolist() == [1, 2]
    assert not torch.FloatTensor(2).is_cuda
    sparse = cuda.sparse.FloatTensor(torch.tensor([[0], [1]]).cuda(), torch.ones(1).cuda(), torch.Size([2, 2]))
    assert sparse.is_cuda
    raises(TypeError, "expected", lambda: cuda.FloatTensor(torch.ones(2)))


def typed_classes_answer_isinstance() -> None:
    here, there = torch.ones(2), torch.ones(2).cuda()
    assert isinstance(there, cuda.FloatTensor)
    assert isinstance(here, torch.FloatTensor)
    assert not isinstance(here, cuda.FloatTensor)
    assert not isinstance(there, torch.FloatTensor)
    assert not isinstance(there.long(), cuda.FloatTensor)


def type_names_and_moves() -> None:
    here, there = torch.ones(2), torch.ones(2).cuda()
    assert there.type() == "torch.cuda.FloatTensor"
    assert here.type() == "torch.FloatTensor"
    assert on_cuda(here.type("torch.cuda.LongTensor"), here.type(cuda.FloatTensor), here.type_as(there))
    assert not there.type("torch.FloatTensor").is_cuda
    assert there.type(torch.float64).is_cuda
    raises(ValueError, "invalid type", lambda: here.type("torch.cuda.Nonsense"))


def the_default_device_is_used() -> None:
    torch.set_default_device("cuda")
    assert on_cuda(torch.zeros(2), torch.tensor([1.0]), torch.as_tensor([1]), torch.randn(2))
    torch.set_default_device("cpu")
    assert not torch.zeros(2).is_cuda
    with torch.device("cuda"):
        assert on_cuda(torch.ones(2), torch.tensor(1), torch.nn.Linear(2, 2).weight)
    assert not torch.ones(2).is_cuda


def the_default_tensor_type_is_used() -> None:
    torch.set_default_tensor_type("torch.cuda.FloatTensor")
    assert on_cuda(torch.zeros(2), torch.Tensor(2, 3), torch.tensor([1.0]), torch.nn.Linear(2, 2).weight)
    assert not torch.FloatTensor(2).is_cuda
    assert not torch.zeros(2, device="cpu").is_cuda
    raises(RuntimeError, "for generator", lambda: torch.randperm(3, generator=torch.Generator()))
    torch.set_default_tensor_type(torch.DoubleTensor)
    assert not torch.zeros(2).is_cuda
    assert torch.zeros(2).dtype == torch.float64


def a_generator_draws_on_its_device() -> None:
    def drawn() -> list[float]:
        generator = torch.Generator(device="cuda")
        generator.manual_seed(0)
        made = torch.randn(3, device="cuda", generator=generator)
        assert made.is_cuda
        return made.tolist()

    assert drawn() == drawn()
    raises(RuntimeError, "'cuda' device type", lambda: torch.randn(3, device="cuda", generator=torch.Generator()))
    raises(RuntimeError, "'cpu' device type", lambda: torch.randn(3, generator=torch.Generator("cuda")))
    assert isinstance(torch.default_generator, torch.Generator)


def the_device_has_a_random_stream_of_its_own() -> None:
    torch.manual_seed(0)
    here = torch.rand(3)
    torch.manual_seed(0)
    there = torch.rand(3, device="cuda")
    assert torch.equal(torch.rand(3), here), "drawing on the device changed the CPU's stream"
    assert not torch.equal(there.cpu(), here)
    torch.cuda.manual_seed(0)
    assert torch.equal(torch.rand(3, device="cuda"), there)


def a_random_state_can_be_put_back() -> None:
    state = torch.cuda.get_rng_state()
    first = torch.nn.functional.dropout(torch.ones(50).cuda())
    torch.cuda.set_rng_state(state)
    assert torch.equal(first, torch.nn.functional.dropout(torch.ones(50).cuda()))
    with torch.random.fork_rng(devices=[0]):
        inside = torch.rand(3, device="cuda")
    assert torch.equal(inside, torch.rand(3, device="cuda"))


@two_devices
def a_seed_gives_the_same_on_all_devices() -> None:
    torch.cuda.manual_seed_all(5)
    assert torch.equal(torch.rand(3, device="cuda:0").cpu(), torch.rand(3, device="cuda:1").cpu())
