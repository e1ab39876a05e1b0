"""Workers and threads beside a device."""

import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from torchmod.verify.checks.expecting import raises


class Numbers(Dataset[tuple[Tensor, int]]):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.full((2,), float(index)), index


class OnDevice(Numbers):
    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.ones(1).cuda(), index


def loaders_pin_their_batches() -> None:
    for workers in (0, 2):
        total = 0.0
        for inputs, _ in DataLoader(Numbers(), 4, num_workers=workers, pin_memory=True):
            assert not inputs.is_cuda
            assert inputs.is_pinned()
            there = inputs.cuda(non_blocking=True)
            assert there.is_cuda
            total += there.sum().item()
        assert total == 56


def a_forked_worker_cannot_use_the_device() -> None:
    torch.ones(1).cuda()
    text = "Cannot re-initialize CUDA in forked subprocess"
    raises(RuntimeError, text, lambda: list(DataLoader(OnDevice(), 1, num_workers=1, multiprocessing_context="fork")))


def threads_see_the_device() -> None:
    class Worker(threading.Thread):
        def run(self) -> None:
            found.append((there * 2).is_cuda)

    found: list[bool] = []
    there = torch.ones(2).cuda()
    threads = [threading.Thread(target=lambda: found.append((there + 1).is_cuda)), Worker()]
    for thread in threads:
        thread.start()
        thread.join()
    with ThreadPoolExecutor(1) as pool:
        found.append(pool.submit(lambda: (there - 1).is_cuda).result())
    assert found == [True, True, True]
