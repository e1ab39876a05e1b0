"""Checkpoints, and where their tensors come back."""

import io
from typing import Any

import torch
from torch import nn

from torchmod.verify.checks.expecting import raises, two_devices


def saved() -> io.BytesIO:
    """A checkpoint of a tensor on the device."""
    file = io.BytesIO()
    torch.save({"w": torch.ones(2).cuda()}, file)
    file.seek(0)
    return file


def to_first(storage: Any) -> Any:
    return storage.cuda(0)


def tensors_come_back_to_their_device() -> None:
    assert torch.load(saved())["w"].is_cuda


def map_location_is_obeyed() -> None:
    assert not torch.load(saved(), map_location="cpu")["w"].is_cuda
    assert not torch.load(saved(), map_location=torch.device("cpu"))["w"].is_cuda
    assert not torch.load(saved(), map_location=lambda storage, location: storage)["w"].is_cuda
    assert torch.load(saved(), map_location=lambda storage, location: to_first(storage))["w"].is_cuda
    assert torch.load(saved(), map_location={"cuda:0": "cpu"})["w"].device.type == "cpu"


@two_devices
def map_location_reaches_the_second_device() -> None:
    assert torch.load(saved(), map_location={"cuda:0": "cuda:1"})["w"].get_device() == 1
    assert torch.load(saved(), map_location=torch.device("cuda:1"))["w"].get_device() == 1


def a_checkpoint_of_a_missing_device_is_refused() -> None:
    raises(RuntimeError, "device_count", lambda: torch.load(saved(), map_location="cuda:77"))


def a_state_dict_goes_into_a_module_elsewhere() -> None:
    there, here, file = nn.Linear(2, 2).cuda(), nn.Linear(2, 2), io.BytesIO()
    torch.save(there.state_dict(), file)
    file.seek(0)
    here.load_state_dict(torch.load(file))
    assert not here.weight.is_cuda
    assert torch.equal(here.weight, there.weight.cpu())
