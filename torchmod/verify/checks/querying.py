"""Asking about devices, choosing one, and the memory that they use."""

import os
import threading

import torch

from torchmod.verify.checks.expecting import raises, two_devices


def questions_are_answered() -> None:
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() >= 1
    assert torch.cuda.current_device() == 0
    assert isinstance(torch.cuda.get_device_name(0), str)
    assert isinstance(torch.cuda.get_device_capability(), tuple)
    assert torch.cuda.get_device_properties(0).total_memory > 1 << 30
    assert str(torch.accelerator.current_accelerator()) == "cuda"


def commands_are_taken() -> None:
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.ipc_collect()
    torch.cuda.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.initial_seed() == 1


def memory_is_counted() -> None:
    torch.ones(1).cuda()
    before = torch.cuda.memory_allocated()
    made = torch.ones(1000).cuda()
    assert torch.cuda.memory_allocated() - before >= 4000
    assert torch.cuda.max_memory_allocated() >= 4000
    del made
    assert torch.cuda.memory_allocated() == before
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == before
    assert "PyTorch CUDA memory summary" in torch.cuda.memory_summary()
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total


def streams_and_events_are_taken() -> None:
    stream, event = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
    event.record()
    with torch.cuda.stream(stream):
        made = torch.ones(2).cuda()
    torch.cuda.current_stream().wait_stream(stream)
    made.record_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().synchronize()
    event.synchronize()
    assert made.sum().item() == 2


def a_stream_is_current_while_it_is_entered() -> None:
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert first == first  # noqa: PLR0124
    assert first != second
    with torch.cuda.stream(first):
        assert torch.cuda.current_stream() == first
        with second:
            assert torch.cuda.current_stream() == second
        assert torch.cuda.current_stream() == first
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    with torch.cuda.stream(None):
        assert torch.cuda.current_stream() == torch.cuda.default_stream()
    torch.cuda.set_stream(second)
    assert len({torch.cuda.current_stream(), second, first}) == 2


@two_devices
def a_stream_brings_its_device() -> None:
    stream = torch.cuda.Stream(device=1)
    assert stream.device == torch.device("cuda:1")
    with torch.cuda.stream(stream):
        assert torch.cuda.current_device() == 1
        assert torch.zeros(1, device="cuda").get_device() == 1
        assert torch.cuda.current_stream() == stream
        assert torch.cuda.current_stream(0) == torch.cuda.default_stream(0)
    assert torch.cuda.current_device() == 0
    assert torch.cuda.current_stream(1) == torch.cuda.default_stream(1)
    torch.cuda.set_stream(stream)
    assert torch.cuda.current_device() == 1


def each_thread_has_its_own_current_stream() -> None:
    found: list[bool] = []
    with torch.cuda.stream(torch.cuda.Stream()):
        thread = threading.Thread(target=lambda: found.append(torch.cuda.current_stream().cuda_stream == 0))
        thread.start()
        thread.join()
    assert found == [True]


def events_that_were_recorded_have_a_time_between_them() -> None:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    raises(ValueError, "must be recorded", lambda: start.elapsed_time(end))
    start.record()
    raises(ValueError, "must be recorded", lambda: start.elapsed_time(end))
    torch.ones(1000).cuda().sum()
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) > 0
    untimed = torch.cuda.Event()
    untimed.record()
    raises(ValueError, "enable_timing=True", lambda: start.elapsed_time(untimed))


@two_devices
def a_device_can_be_chosen() -> None:
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        assert torch.ones(2).cuda().get_device() == 1
        assert torch.zeros(2, device="cuda").get_device() == 1
    assert torch.cuda.current_device() == 0
    with torch.cuda.device_of(torch.ones(1, device="cuda:1")):
        assert torch.cuda.current_device() == 1
    torch.cuda.set_device(1)
    assert torch.ones(2).cuda().get_device() == 1
    assert torch.tensor([1.0]).type("torch.cuda.FloatTensor").get_device() == 1
    raises(RuntimeError, "invalid device ordinal", lambda: torch.cuda.set_device(77))


def hidden_devices_do_not_exist() -> None:
    """CUDA reads the variable at its first use, which is here."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    torch.ones(1).cuda()
    assert torch.cuda.device_count() == 1
    raises(RuntimeError, "invalid device ordinal", lambda: torch.ones(1).cuda(1))
