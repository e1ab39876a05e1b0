"""The golden pairs, run; and the verification itself on small cases that are right, wrong, or do not run."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: the golden pairs are not run")

from conftest import SUMMARY

from torchmod.verify import report
from torchmod.verify.__main__ import main
from torchmod.verify.cases import GRADIENTS, MODES, NO_ACCELERATOR, Case, VerifyError, read_cases
from torchmod.verify.compare import Kind, Want, compare
from torchmod.verify.confine import Limits
from torchmod.verify.golden import Result, run_cases
from torchmod.verify.simulated import real_cuda
from torchmod.verify.trace import Device, Job
from torchmod.verify.zygote import run_jobs

ROOT = Path(__file__).parent.parent / "golden"
CASES = read_cases(ROOT)
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> Device:
    return Device(request.config.getoption("--device"))


@pytest.fixture(scope="session")
def results(request: pytest.FixtureRequest, device: Device) -> dict[str, Result]:
    """All golden cases, run in one go."""
    found = run_cases(CASES, device)
    request.config.stash[SUMMARY] = f"golden pairs: {report.where(found)}; {report.caveat(found)}"
    return {result.case.path: result for result in found}


@each_case
def test_the_pair_does_the_same(case: Case, results: dict[str, Result]) -> None:
    result = results[case.path]
    if case.cannot_run:
        pytest.skip(f"{case.path} cannot run: {case.cannot_run}")
    told = report.as_text([result])
    assert result.kind is Kind.EQUIVALENT, told


@each_case
def test_every_wrong_rewrite_is_told_apart(case: Case, results: dict[str, Result]) -> None:
    result = results[case.path]
    assert case.wrong or case.cannot_run, "a case has at least one wrong_<what>.py"
    assert [one.name for one in result.wrong if not one.caught] == []


def test_for_losses_every_mode_makes_sense(results: dict[str, Result], device: Device) -> None:
    wanted = set(MODES) - ({NO_ACCELERATOR} if device is Device.CPU else set())
    losses = [result for path, result in results.items() if path.startswith("loss-reduction/")]
    assert losses
    assert all(set(result.verdicts) == wanted for result in losses)


def test_a_simulated_device_is_never_called_a_gpu(results: dict[str, Result]) -> None:
    found = list(results.values())
    data = json.loads(report.as_json(found))
    if report.devices(found) == ["simulated"]:
        assert not data["real_gpu"]
        assert report.where(found).startswith("run on a simulated CUDA device")
        assert "without a real GPU" in report.caveat(found)
    else:
        assert data["real_gpu"] == all(one.startswith("cuda (") for one in data["devices"])


def test_thirty_sides_run_twice_give_no_difference(device: Device) -> None:
    sides = [(case, source) for case in CASES if not case.cannot_run for source in (case.before, case.after)][:30]
    jobs = [Job(source, setup=case.setup, watch=case.watch, device=device) for case, source in sides]
    first, second = run_jobs(jobs), run_jobs(jobs)
    assert [compare(one, other) for one, other in zip(first, second, strict=True)] == [[]] * len(jobs)


SETUP = "import torch\nx = torch.tensor([1.0, 2.0, 4.0])\n"


def run_one(before: str, after: str, device: Device = Device.CPU, **more: Any) -> Result:
    before, after = (f"import torch\n{program}" for program in (before, after))
    case = Case("some-transform", "rewrites_it", before, after, **{"setup": SETUP, **more})
    return run_cases([case], device, Limits(seconds=5))[0]


def begins(text: str, expected: str) -> bool:
    """Whether a text is the expected one, or begins as it does when that ends with a star."""
    return text.startswith(expected[:-1]) if expected.endswith("*") else text == expected


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("y = x.sum()", "y = x.mean()", "y: value was 7, is 2.33333325"),
        ("y = x * 2", "y = [1.0]", "y: type was tensor(3), is list"),
        ("y = 1", "z = 1", "y: presence was present, is absent"),
        ("print('a')", "print('b')", "<output>: text was a, is b"),
        ("y = torch.rand(1)", "y = torch.rand(2)[:1]", "<random>.torch: state was *"),
        ("import random", "import random; random.random()", "<random>.python: state was *"),
        ("y = 1", "raise KeyError('y')", "<run>: exception was none, is KeyError: 'y'"),
        ("torch.save({'e': 1}, 'a.pt')", "torch.save({'e': 2}, 'a.pt')", "<files>.a.pt.e: value was 1, is 2"),
        ("open('a', 'w').write('1')", "open('b', 'w').write('1')", "<files>.a: presence was present, is absent"),
        ("y = 1", "import warnings; warnings.warn('old'); y = 1", "<warnings>: new was none, is UserWarning: old"),
        ("y = torch.nn.MSELoss()", "y = torch.nn.L1Loss()", "y: type was MSELoss, is L1Loss"),
        ("y = torch.nn.MSELoss()", "y = torch.nn.MSELoss(reduction='sum')", "y.reduction: value was mean, is sum"),
        ("y = 1", "import os; os._exit(0)", "it ended its own process, with status 0"),
        ("y = range(3)", "y = range(4)", "y.stop: value was 3, is 4"),
        ("class C: _v = 1\ny = C()", "class C: _v = 2\ny = C()", "C._v: value was 1, is 2"),
        ("import os; os.mkdir('d'); os.symlink('a', 'b')", "import os; os.symlink('c', 'b')", "<files>.b: value was *"),
        ("import os", "import os; os.remove('program.py')", "<files>.program.py (removed): presence was absent, *"),
        ("y = 1", "raise ValueError('a' * 2000)", "<run>: exception was none, *"),
        ("raise ValueError('a' * 2000 + 'b')", "raise ValueError('a' * 2000 + 'c')", "<run>: exception was *"),
        (
            "for n in range(1100): open(f'{n:04}', 'w').write('1')",
            "for n in range(1100): open(f'{n:04}', 'w').write(str(1 + n // 1099))",
            "<files>.<the rest>: value was *",
        ),
        ("print('a' * 5_000_000)", "print('a' * 4_999_999 + 'b')", "<output>: *"),
    ],
)
def test_a_difference_is_found(before: str, after: str, reason: str) -> None:
    raises = before.startswith("raise")
    wants = {"device": (Want("<run>", "exception", "*", "none"),)} if raises else {}
    result = run_one(before, after, wants=wants)
    assert result.kind is Kind.DIFFERENT
    assert begins(result.verdicts["device"].reason, reason)


@pytest.mark.parametrize(
    "program",
    [
        "y = x * 2; print(y, id, object())",
        "import os; y = os.getcwd(); torch.save(x, 'x.pt')",
        "class Mine:\n    def __init__(self): self.x = x\ny = Mine()",
        "import os; open('log', 'w').write(f'{os.getcwd()} {object()}')",
        "model = torch.nn.LSTM(1, 1)\nmodel.register_forward_hook(lambda *given: None)",
        "y = torch.amp.GradScaler('cpu')\ny._per_optimizer_states[id(object())]",
        "import pickle\nclass Mine: pass\ny = pickle.loads(pickle.dumps(Mine()))",
        "y = {id(x): 1}; y = set('abc'); y = x.new_empty(3)",
        "y = (n for n in range(3)); f = lambda: 1",
        "import inspect\ndef f(): return 1\ny = inspect.getsource(f)",
        "import traceback\ntry: 1 / 0\nexcept ZeroDivisionError: traceback.print_exc()",
        "model = torch.nn.Linear(3, 1)\noptimizer = torch.optim.Adam(model.parameters())\n"
        "model(x).sum().backward()\noptimizer.step()",
        "from torch.utils.data import DataLoader\ny = [b.tolist() for b in DataLoader(x, 2, num_workers=1)]",
    ],
)
def test_the_same_program_does_the_same(program: str) -> None:
    result = run_one(program, program)
    assert result.kind is Kind.EQUIVALENT, report.as_text([result])


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        ("y = x.sum()", "y = x.detach().sum()", "y"),
        ("y = x.sum()", "y = x.sum().item()", "y"),
        ("y = (x * 2).sum()", "y = x.sum() + x.detach().sum()", "<gradients>.y.x"),
        ("y = (x * 2).sum(); y.backward()", "y = x.sum() + x.detach().sum(); y.backward()", "x.grad"),
    ],
)
def test_with_inputs_that_require_grad_more_is_seen(before: str, after: str, path: str) -> None:
    before, after = (text if "backward" not in text else f"if x.requires_grad: {text}" for text in (before, after))
    verdicts = run_one(before, after).verdicts
    assert path in [one.path for one in verdicts[GRADIENTS].differences]


def test_where_inputs_cannot_require_grad_that_mode_is_left_out() -> None:
    result = run_one("x += 1", "x += 1")
    assert result.passed
    assert result.left_out[GRADIENTS].startswith("with them before.py raises RuntimeError: a leaf Variable")


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("1 / 0", "it raises ZeroDivisionError: division by zero (line 1)"),
        ("while True: pass", "stopped: *"),
        ("import os; os.kill(os.getpid(), 15)", "killed by SIGTERM"),
        ("y = = 1", "it raises SyntaxError: invalid syntax (line 1)"),
    ],
)
def test_a_program_before_that_does_not_run_is_inconclusive(before: str, reason: str) -> None:
    case = Case("some-transform", "rewrites_it", before, before, wrong={"wrong_any.py": "y = 1"})
    (result,) = run_cases([case], Device.CPU, Limits(seconds=1))
    found = result.verdicts["device"]
    assert found.kind is Kind.INCONCLUSIVE
    assert begins(found.reason, reason)
    assert not result.passed
    assert not result.wrong[0].caught


@pytest.mark.parametrize(
    ("wrong", "by", "how"),
    [
        ("y = 2", "value", "y: value was 1, is 2"),
        ("y = 1.0", "type", "y: type was int, is float"),
        ("y = 1; print()", "text", "<output>: text was (no line), is *"),
        ("raise ValueError('no')", "exception", "<run>: exception was none, is ValueError: no"),
        ("y = = 2", "", "it raises SyntaxError: invalid syntax (line 2): a slip? *"),
        ("y = z", "", "it raises NameError: name 'z' is not defined (line 2): a slip? *"),
        ("def f():\n    print(z)\n    z = 1\nf()", "", "it raises UnboundLocalError: *"),
        ("import no_such_thing", "", "it raises ModuleNotFoundError: *"),
        ("y = torch.no_such_thing", "", "it raises AttributeError: *"),
        ("import os; os._exit(3)", "", "it ended its own process, with status 3: nothing could be compared *"),
        ("import warnings; warnings.warn('no'); y = 1", "", "only its warnings differ, *"),
        ("y = 1", "", "it does the same"),
    ],
)
def test_what_tells_a_wrong_rewrite_apart(wrong: str, by: str, how: str) -> None:
    (found,) = run_one("y = 1", "y = 1", wrong={"wrong_any.py": f"import torch\n{wrong}"}).wrong
    assert (found.caught, found.by) == (bool(by), by)
    assert begins(found.how, how)


def test_the_report_says_by_what_wrong_rewrites_were_told_apart() -> None:
    wrong = {"wrong_a.py": "y = 2", "wrong_b.py": "y = 3", "wrong_c.py": "1 / 0", "wrong_d.py": "y = 1"}
    result = run_one("y = 1", "y = 1", wrong=wrong)
    assert "told apart by: value 2, exception 1\n" in report.as_text([result])
    assert json.loads(report.as_json([result]))["wrong"]["by"] == {"value": 2, "exception": 1}


def test_a_pair_that_differs_is_not_counted_as_equivalent_with_gradients() -> None:
    same, other = run_one("y = x.sum()", "y = x.sum()"), run_one("y = x.sum()", "y = x.mean()")
    assert GRADIENTS in other.verdicts
    row = report.as_text([same, other]).splitlines()[1].split()
    assert row[:4] == ["some-transform", "2", "1", "1"]


def test_what_was_not_compared_is_in_the_report() -> None:
    program = "y = [(n for n in 'a')]"
    result = run_one(program, program)
    assert "    not compared: y.0\n" in report.as_text([result])
    assert json.loads(report.as_json([result]))["cases"][0]["not_compared"] == ["y.0"]
    watched = run_one(program, program, watch=("y",))
    assert {verdict.kind for verdict in watched.verdicts.values()} == {Kind.INCONCLUSIVE}


@pytest.mark.skipif(real_cuda(), reason="there is a GPU here")
def test_the_random_numbers_of_a_device_in_use_count() -> None:
    result = run_one("y = x.cuda()", "y = x.cuda(); torch.rand(1, device='cuda')", Device.SIMULATED)
    assert [one.path for one in result.verdicts["device"].differences] == ["<random>.cuda:0"]


def test_the_modules_that_the_setup_imports_are_not_the_programs() -> None:
    result = run_one("y = 1", "y = math.floor(1.0)", setup="import math")
    assert result.verdicts["device"].reason == "<run>: exception was none, is NameError: name 'math' is not defined"


def test_h5py_opens_and_what_can_be_sent_to_workers_are_observed() -> None:
    pytest.importorskip("h5py", reason="h5py is not installed")
    start = "import h5py\nfrom torch.utils.data import Dataset, DataLoader\nclass Data(Dataset):\n"
    end = "    def __len__(self): return 2\n    def __getitem__(self, i): return self.{}['x'][i]\n"
    use = "data = Data()\nrows = [row.tolist() for row in DataLoader(data, num_workers=1)]\n"
    eager = "    def __init__(self): self.file = h5py.File('a.h5', 'r')\n"
    lazy = "    @property\n    def opened(self): return h5py.File('a.h5', 'r')\n"
    setup = "import h5py\nwith h5py.File('a.h5', 'w') as file: file['x'] = [1, 2]\n"
    result = run_one(
        f"{start}{eager}{end.format('file')}{use}", f"{start}{lazy}{end.format('opened')}{use}", setup=setup
    )
    assert [str(one) for one in result.verdicts["device"].differences] == [
        "data: pickles was TypeError, is yes",
        "data.file: presence was present, is absent",
        "<h5py>.main: opens was 1, is 0",
        "<h5py>.workers: opens was 0, is 1",
        "<h5py>.in workers: opens was 0, is 2",
    ]


def test_a_setup_that_fails_is_named() -> None:
    result = run_one("y = 1", "y = 1", setup="import no_such_thing")
    assert result.verdicts["device"].reason.startswith("it raises ModuleNotFoundError: in setup.py: No module named")


@pytest.mark.skipif(real_cuda(), reason="there is a GPU here")
def test_code_that_needs_an_accelerator_is_found_out() -> None:
    result = run_one("y = x.cuda()", "y = x.cuda()", Device.SIMULATED)
    assert result.device == "simulated"
    assert result.verdicts["device"].kind is Kind.EQUIVALENT
    assert result.verdicts[NO_ACCELERATOR].kind is Kind.DIFFERENT


@pytest.mark.skipif(real_cuda(), reason="there is a GPU here")
def test_code_for_any_device_passes_and_a_device_that_was_forgotten_is_told_apart() -> None:
    choose = "device = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
    result = run_one(
        f"{choose}y = x.to(device)",
        f"{choose}y = x.to(device=device)",
        Device.SIMULATED,
        wrong={"wrong_cpu.py": "y = x", "wrong_fixed.py": "y = x.to('cuda')"},
        watch=("y",),
    )
    assert result.passed, report.as_text([result])
    assert [one.mode for one in result.wrong] == ["device", NO_ACCELERATOR]


@pytest.mark.skipif(real_cuda(), reason="there is a GPU here")
def test_that_an_accelerator_is_needed_can_be_declared() -> None:
    wants = Want("<run>", "exception", after="AssertionError*"), Want("y", "presence")
    program = "y = x.cuda()"
    result = run_one(program, program, Device.SIMULATED, wants={NO_ACCELERATOR: wants}, watch=("y",))
    assert result.passed, report.as_text([result])


@pytest.mark.skipif(
    not real_cuda(), reason="no GPU here: what the simulated device does was not compared with a real one"
)
def test_a_real_device_does_what_the_battery_expects_of_the_simulated_one() -> None:
    from torchmod.verify.battery import run_battery

    assert [str(one) for one in run_battery("cuda") if one.status == "failed"] == []


@pytest.mark.parametrize(
    ("profile", "before", "after", "wrong"),
    [
        (
            "0.3",
            "from torch.autograd import Variable\ny = Variable(x).sum().data[0]",
            "y = x.sum().item()",
            "y = x.sum()",
        ),
        (
            "0.3",
            "from torch.autograd import Variable\ny = Variable(x, volatile=True) * p",
            "with torch.no_grad(): y = x * p",
            "y = x * p",
        ),
        ("1.1", "y = x[1 - (x > 1)]", "y = x[~(x > 1)]", "y = x[x > 1]"),
        ("1.4", "y = n / 2", "y = torch.div(n, 2, rounding_mode='trunc')", "y = n // 2"),
    ],
)
def test_the_program_before_runs_under_its_profile_and_the_others_do_not(
    profile: str, before: str, after: str, wrong: str
) -> None:
    setup = f"{SETUP}p = torch.ones(3, requires_grad=True)\nn = torch.arange(-3, 3)\n"
    wrongs = {"wrong_any.py": f"import torch\n{wrong}", "wrong_unchanged.py": f"import torch\n{before}"}
    result = run_one(before, after, legacy=profile, setup=setup, wrong=wrongs, watch=("y",))
    assert result.passed, report.as_text([result])


def write(folder: Path, name: str, **files: str) -> None:
    case = folder / "some_transform" / name
    case.mkdir(parents=True)
    for file, text in files.items():
        (case / (f"{file}.toml" if file == "case" else f"{file}.py")).write_text(text, encoding="utf-8")


GOOD = {"before": "y = 1", "after": "y = 1"}


@pytest.mark.parametrize(
    ("cases", "status"),
    [
        ([GOOD], 0),
        ([GOOD, {**GOOD, "case": "cannot-run = 'it needs a camera'", "before": "1 / 0"}], 0),
        ([{**GOOD, "case": "cannot-run = 'it needs a camera'"}], 3),
        ([dict.fromkeys(GOOD, "y = (n for n in 'a')")], 0),
        ([{**dict.fromkeys(GOOD, "y = (n for n in 'a')"), "case": "watch = ['y']"}], 3),
        ([{**GOOD, "wrong_two": "y = = 2"}], 1),
        ([{**GOOD, "wrong_two": "y = no_such_name", "case": "wrong-raises = ['wrong_two.py']"}], 0),
        ([{**GOOD, "wrong_two": "y = 2", "case": "wrong-raises = ['wrong_two.py']"}], 1),
        ([{**GOOD, "case": "wrong-raises = ['wrong_two.py']"}], 2),
        ([{**GOOD, "wrong_two": "y = 2"}], 0),
        ([{**GOOD, "after": "y = 2"}], 1),
        ([{**GOOD, "wrong_name": "y = 2 - 1"}], 1),
        ([{**GOOD, "after": "y = 2", "case": "wants = [{ path = 'y', aspect = 'value', after = 2 }]"}], 0),
        ([{**GOOD, "case": "wants = [{ path = 'y', aspect = 'value' }]"}], 1),
        ([{"before": "y = 1"}], 2),
        ([{**GOOD, "case": "wach = ['y']"}], 2),
        ([{**GOOD, "case": "wants = [{ path = 'y' }]"}], 2),
        ([{**GOOD, "case": "= 1"}], 2),
        ([{**GOOD, "before": "1 / 0"}], 3),
        ([{**GOOD, "before": "1 / 0"}, {**GOOD, "after": "y = 2"}], 1),
    ],
)
def test_the_exit_status(
    cases: list[dict[str, str]], status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, files in enumerate(cases):
        write(tmp_path, f"rewrites_{number}", **files)
    assert main(["golden", "--golden", str(tmp_path), "--device", "cpu"]) == status
    out = capsys.readouterr().out
    assert "run on the CPU" in out or "nothing was run" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["golden", "--golden", "nowhere"], "there are no golden cases in nowhere"),
        (["golden", "--golden", str(ROOT), "no-such"], "is called `no-such`"),
        pytest.param(
            ["golden", "--golden", str(ROOT), "--device", "cuda"],
            "there is no CUDA device here",
            marks=pytest.mark.skipif(real_cuda(), reason="there is a GPU here"),
        ),
    ],
)
def test_what_cannot_be_run_is_said(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert says in capsys.readouterr().err


def test_json_tells_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "rewrites_it", before="y = 1", after="y = 2", wrong_same="y = 1")
    assert main(["golden", "--golden", str(tmp_path), "--device", "cpu", "--format", "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    (case,) = data.pop("cases")
    assert data["pairs"] == {"total": 1, "equivalent": 0, "different": 1, "stale": 0, "inconclusive": 0, "not_run": 0}
    assert (data["version"], data["devices"], data["real_gpu"]) == (1, ["cpu"], False)
    assert data["wrong"] == {"total": 1, "caught": 0, "by": {}}
    assert (case["transform"], case["case"], case["outcome"]) == ("some-transform", "rewrites_it", "different")
    assert case["modes"]["device"]["differences"] == [{"path": "y", "aspect": "value", "before": "1", "after": "2"}]
    (same,) = case["wrong"]
    assert same == {"file": "wrong_same.py", "caught": False, "mode": None, "by": None, "how": "it does the same"}
    assert case["not_compared"] == []


def test_cases_are_chosen_by_transform_by_name_and_by_both(tmp_path: Path) -> None:
    write(tmp_path, "rewrites_a", **GOOD)
    write(tmp_path, "rewrites_b", **GOOD)
    write(tmp_path, "keeps_c", **GOOD)
    chosen = {
        name: [case.name for case in read_cases(tmp_path, [name])]
        for name in ("some-transform", "some_transform", "rewrites_b", "some-transform/rewrites_a")
    }
    assert chosen == {
        "some-transform": ["rewrites_a", "rewrites_b"],
        "some_transform": ["rewrites_a", "rewrites_b"],
        "rewrites_b": ["rewrites_b"],
        "some-transform/rewrites_a": ["rewrites_a"],
    }
    with pytest.raises(VerifyError):
        read_cases(tmp_path, ["keeps_c"])
