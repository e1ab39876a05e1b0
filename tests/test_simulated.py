"""The simulated device does what CUDA code may expect of a real one, and lets nobody see the difference."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial

import pytest

pytest.importorskip("torch", reason="torch is not installed: there is nothing to simulate a device for")

import torch

from torchmod.verify import battery, simulated
from torchmod.verify.confine import Limits
from torchmod.verify.trace import Status
from torchmod.verify.zygote import CAN_FORK, run_function

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="there is no fork here: each check would take seconds")


def in_child(function: Callable[[], object]) -> None:
    """Call a function on the simulated device, in a process of its own."""
    ended = run_function(partial(installed, function), Limits(seconds=30))
    assert ended.status is Status.RAN, ended.reason


def installed(function: Callable[[], object]) -> None:
    simulated.install(2)
    function()


@pytest.fixture(scope="module")
def results() -> dict[str, battery.BatteryResult]:
    return {result.name: result for result in battery.run_battery("simulated")}


@pytest.mark.parametrize("name", battery.checks())
def test_the_battery_passes(name: str, results: dict[str, battery.BatteryResult]) -> None:
    assert results[name].status == "passed", results[name].reason


def test_the_battery_has_not_shrunk() -> None:
    assert len(battery.checks()) >= 100


def test_a_check_that_needs_more_devices_is_skipped_with_its_reason() -> None:
    name = "moving.a_tensor_goes_to_the_second_device"
    ended = run_function(partial(with_one_device, name))
    assert battery.result_of(name, ended) == battery.BatteryResult(name, "skipped", "it needs 2 devices")


def with_one_device(name: str) -> str:
    battery.DEVICES = 1
    return battery.run_check(name, simulate=True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="with a GPU the checks pass without the simulation")
@pytest.mark.parametrize("name", ["moving.cuda_makes_a_copy", "mixing.adding_is_refused", "querying.memory_is_counted"])
def test_a_check_fails_without_a_device(name: str) -> None:
    ended = run_function(partial(battery.run_check, name, simulate=False))
    assert battery.result_of(name, ended) != battery.BatteryResult(name, "passed")


def test_the_process_that_starts_the_checks_stays_as_it_was() -> None:
    before = torch.Tensor.cuda, torch.tensor, torch.Generator, torch.cuda.is_available()
    in_child(lambda: None)
    assert (torch.Tensor.cuda, torch.tensor, torch.Generator, torch.cuda.is_available()) == before


def test_it_is_installed_once() -> None:
    ended = run_function(partial(installed, simulated.install))
    assert ended.status is Status.RAISED
    assert "installed already" in ended.reason


def test_it_is_no_real_device() -> None:
    in_child(check_not_real)


def check_not_real() -> None:
    assert torch.cuda.is_available()
    assert not simulated.real_cuda()
    assert "simulated" in torch.cuda.get_device_name()


def test_an_operator_written_in_python_sees_the_device() -> None:
    in_child(check_own_operator)


def check_own_operator() -> None:
    @torch.library.custom_op("torchmod_test::twice", mutates_args=())
    def twice(value: torch.Tensor) -> torch.Tensor:
        assert value.is_cuda
        return torch.full_like(value, 2.0) * value + torch.zeros(1, device=value.device)

    result = twice(torch.ones(3).cuda())
    assert result.is_cuda
    assert result.tolist() == [2, 2, 2]


def test_devices_follow_storages_through_views_and_swaps() -> None:
    in_child(check_storages)


def check_storages() -> None:
    there = torch.zeros(4).cuda()
    view, alias = there[:2], there.detach()
    view += 1
    assert there.tolist() == [1, 1, 0, 0]
    assert view.untyped_storage().data_ptr() == there.untyped_storage().data_ptr()
    assert alias.device == view.device == there.device
    alias.set_(torch.ones(2, device="cuda:1").untyped_storage(), 0, (2,))
    assert alias.get_device() == 1
    assert there.get_device() == 0


def test_memory_is_given_back_at_the_end_of_a_storage_not_of_a_tensor() -> None:
    in_child(check_memory)


def check_memory() -> None:
    whole = torch.zeros(1000).cuda()
    part = whole[:1]
    del whole
    assert torch.cuda.memory_allocated() == 4000
    del part
    assert torch.cuda.memory_allocated() == 0


@pytest.mark.parametrize(
    ("given", "count"), [(None, 3), ("", 0), ("1", 1), ("0,2", 2), ("0,-1,1", 1), ("2,7,1", 1), ("0,0", 1)]
)
def test_visible_devices_are_read_up_to_the_first_wrong_one(
    given: str | None, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchmod.verify.simulated.machine import visible

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if given is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    assert visible(3) == count


def test_no_child_has_to_import_anything_for_it() -> None:
    """What torch imports late, such as torch._dynamo, would cost each child seconds."""
    code = (
        "import sys, torch, torchmod.verify.simulated as simulated; before = set(sys.modules); simulated.install();"
        "(torch.ones(2, requires_grad=True).cuda() * 2).sum().backward(); print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
