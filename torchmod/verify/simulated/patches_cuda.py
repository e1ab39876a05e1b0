"""What ``torch.cuda`` and ``torch.accelerator`` call in C++ and a build for the CPU does not have.

Their own Python code stays: it initialises lazily, queues seeds, and refuses a forked process.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from torchmod.verify.simulated.machine import MEMORY, NAME, machine
from torchmod.verify.simulated.patching import replace
from torchmod.verify.simulated.streams import DEVICE_TYPE, Event, ExternalStream, Stream
from torchmod.verify.simulated.tags import index_for

CAPABILITY = (8, 0)
POOLS = ("all", "large_pool", "small_pool")
IN_USE = ("allocated_bytes", "active_bytes", "requested_bytes", "reserved_bytes")
UNUSED = ("inactive_split_bytes", "allocation", "active", "segment", "inactive_split")


def install() -> None:
    install_core()
    install_memory()
    install_streams()
    install_accelerator()


def install_core() -> None:
    replace(
        torch._C,
        _cuda_init=machine.note_first_use,
        _cuda_getDeviceCount=lambda: machine.count,
        _cuda_getDevice=lambda: machine.local.current,
        _cuda_setDevice=set_device,
        _cuda_isInBadFork=machine.is_forked,
        _cuda_synchronize=lambda: None,
        _cuda_ipc_collect=lambda: None,
        _cuda_isCurrentStreamCapturing=lambda: False,
        _cuda_sleep=lambda cycles: None,
        _cuda_canDeviceAccessPeer=lambda here, there: True,
        _cuda_getArchFlags=lambda: "sm_80",
    )
    replace(
        torch.cuda,
        is_available=lambda: machine.count > 0,
        device_count=lambda: machine.count,
        is_bf16_supported=lambda including_emulation=True: True,
        default_generators=machine.generators,
        _cudart=SimpleNamespace(cudaMemGetInfo=memory_info),
        _is_in_bad_fork=machine.is_forked,
        _get_device_properties=properties,
        _exchange_device=exchange_device,
        _maybe_exchange_device=maybe_exchange_device,
    )


def set_device(index: int) -> None:
    machine.local.current = index_for(index) or 0


def exchange_device(index: int) -> int:
    """Choose a device, unless the number is negative; gives the one before."""
    before = machine.local.current
    if index < 0:
        return -1
    set_device(index)
    return before


def maybe_exchange_device(index: int) -> int:
    """The same, but another function: torch.compile keeps a table of them."""
    return exchange_device(index)


def properties(index: int) -> SimpleNamespace:
    return SimpleNamespace(
        name=NAME,
        major=CAPABILITY[0],
        minor=CAPABILITY[1],
        total_memory=MEMORY,
        multi_processor_count=1,
        is_integrated=0,
        is_multi_gpu_board=0,
        gcnArchName="",
    )


# memory


def install_memory() -> None:
    replace(
        torch._C,
        _cuda_emptyCache=lambda: None,
        _cuda_memoryStats=memory_stats,
        _cuda_resetPeakMemoryStats=reset_peak,
        _cuda_resetAccumulatedMemoryStats=lambda index: machine.total.update({index: machine.allocated[index]}),
    )


def memory_info(index: int) -> tuple[int, int]:
    """The free bytes of a device, and all."""
    return MEMORY - machine.allocated[index], MEMORY


def memory_stats(index: int) -> dict[str, Any]:
    used = {
        "current": machine.allocated[index],
        "peak": machine.peak[index],
        "allocated": machine.total[index],
        "freed": machine.total[index] - machine.allocated[index],
    }
    none = dict.fromkeys(used, 0)
    return {
        **{name: {pool: used if pool != "large_pool" else none for pool in POOLS} for name in IN_USE},
        **{name: dict.fromkeys(POOLS, none) for name in UNUSED},
        **dict.fromkeys(("oversize_allocations", "oversize_segments"), none),
        **dict.fromkeys(("num_ooms", "num_alloc_retries", "num_sync_all_streams"), 0),
    }


def reset_peak(index: int) -> None:
    machine.peak[index] = machine.allocated[index]


# streams


def install_streams() -> None:
    replace(
        torch._C,
        _cuda_getCurrentStream=lambda index: (current_stream(index).stream_id, index, DEVICE_TYPE),
        _cuda_getDefaultStream=lambda index: (0, index, DEVICE_TYPE),
        _cuda_getCurrentRawStream=lambda index: current_stream(index).cuda_stream,
        _cuda_setStream=set_stream,
    )
    replace(torch, Stream=Stream, Event=Event)
    replace(torch.cuda, Stream=Stream, ExternalStream=ExternalStream, Event=Event)


def current_stream(index: int) -> Stream:
    return Stream(stream_id=machine.local.streams.get(index, 0), device_index=index)


def set_stream(stream_id: int, device_index: int, device_type: int) -> None:
    """Choose a stream, and its device with it."""
    set_device(device_index)
    machine.local.streams[device_index] = stream_id


def install_accelerator() -> None:
    replace(
        torch._C,
        _accelerator_getAccelerator=lambda: torch.device("cuda"),
        _accelerator_getDeviceIndex=lambda: machine.local.current,
        _accelerator_setDeviceIndex=set_device,
        _accelerator_exchangeDevice=exchange_device,
        _accelerator_maybeExchangeDevice=maybe_exchange_device,
        _accelerator_getStream=current_stream,
        _accelerator_setStream=torch.cuda.set_stream,
        _accelerator_synchronizeDevice=lambda index: None,
        _accelerator_emptyCache=lambda: None,
    )
    replace(
        torch.accelerator,
        is_available=lambda: machine.count > 0,
        device_count=lambda: machine.count,
    )
