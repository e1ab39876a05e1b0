"""The command line of the verification: what it refuses, how it fails, and what reaches the terminal."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing is run and compared")

from torchmod.verify import golden, report
from torchmod.verify.__main__ import main
from torchmod.verify.cases import VerifyError, read_cases
from torchmod.verify.trace import printable

ON_LINUX = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
GOOD = {"before.py": b"y = 1", "after.py": b"y = 1"}


def write(folder: Path, name: str = "rewrites_it", **files: bytes) -> Path:
    case = folder / "some_transform" / name
    case.mkdir(parents=True)
    for file, data in {
        **GOOD,
        **{key.replace("_py", ".py").replace("_toml", ".toml"): files[key] for key in files},
    }.items():
        (case / file).write_bytes(data)
    return case


def run(folder: Path, *arguments: str) -> int:
    return main(["golden", "--golden", str(folder), "--device", "cpu", *arguments])


def problem(folder: Path) -> str:
    (case,) = read_cases(folder)
    return case.problem


@pytest.mark.parametrize("text", ["-1", "0", "257", "1.5", "two", "", "1_0", "\u00b2"])
def test_an_odd_number_of_jobs_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["golden", f"--jobs={text}"])
    assert left.value.code == 2
    assert f"argument --jobs: {text!r} is no number from 1 to 256" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["-3", "0", "nan", "inf", "-inf", "1e30", "86401", "soon", ""])
def test_an_odd_time_limit_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["golden", f"--timeout={text}"])
    assert left.value.code == 2
    assert f"argument --timeout: {text!r} is no number of seconds above 0" in capsys.readouterr().err


def test_jobs_and_a_time_limit_that_make_sense_are_taken(tmp_path: Path) -> None:
    write(tmp_path)
    assert run(tmp_path, "--jobs", "1", "--timeout", "19.5") == 0


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        (b"devices = 0", "case.toml: `devices` is 0, not 1 to 16"),
        (b"devices = -2", "case.toml: `devices` is -2, not 1 to 16"),
        (b"devices = 17", "case.toml: `devices` is 17, not 1 to 16"),
        (b"devices = true", "case.toml: `devices` is no int"),
        (b"watch = [3]", "case.toml: `watch` holds something that is no name"),
        (b"watch = ['']", "case.toml: `watch` holds something that is no name"),
        (b"wrong-raises = [3]", "case.toml: `wrong-raises` holds something that is no name"),
        (b"cannot-run = ''", "case.toml: `cannot-run` gives no reason"),
        (b"cannot-run = ' '", "case.toml: `cannot-run` gives no reason"),
        (b"legacy = '9.9'", "case.toml: `legacy` is '9.9', not one of 0.3, 1.1, 1.4"),
        (b"x = '\xff'", "case.toml is no UTF-8 (byte 5)"),
    ],
)
def test_a_setting_that_makes_no_sense_is_a_problem_of_its_case(tmp_path: Path, toml: bytes, says: str) -> None:
    write(tmp_path, case_toml=toml)
    assert problem(tmp_path) == says
    assert run(tmp_path) == 2


@pytest.mark.parametrize(
    ("setup", "says"),
    [
        (b"x = 1\nx = (", "setup.py, line 2: '(' was never closed"),
        (b"x\0 = 1", "setup.py*: source code string cannot contain null bytes"),
        (b"# \xff", "setup.py is no UTF-8 (byte 2)"),
    ],
)
def test_a_setup_that_is_no_python_is_named(tmp_path: Path, setup: bytes, says: str) -> None:
    write(tmp_path, setup_py=setup)
    start, _, end = says.partition("*")
    assert problem(tmp_path).startswith(start)
    assert problem(tmp_path).endswith(end)
    assert run(tmp_path) == 2


def test_a_setup_that_python_warns_of_is_taken(tmp_path: Path) -> None:
    write(tmp_path, setup_py=b"x = '\\d'; y = x is 'a'")
    assert problem(tmp_path) == ""


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (write(tmp_path) / "case.toml").mkdir()
    assert problem(tmp_path).startswith("case.toml cannot be read: ")


@pytest.mark.parametrize(
    "name",
    ["some_transform/", "some-transform/", "some_transform/rewrites_it/", "some-transform/rewrites_it", "rewrites_it/"],
)
def test_a_name_may_be_a_folder_as_a_shell_completes_it(tmp_path: Path, name: str) -> None:
    write(tmp_path)
    assert [case.name for case in read_cases(tmp_path, [name])] == ["rewrites_it"]


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("some_transfrom", "is called `some_transfrom`; did you mean `some-transform`?"),
        ("some-transform/rewrites_if", "`some-transform/rewrites_if`; did you mean `some-transform/rewrites_it`?"),
        ("rewrites_id", "`rewrites_id`; did you mean `rewrites_it`?"),
        ("xyz", "is called `xyz`"),
        ("/", "is called `/`"),
        ("", "is called ``"),
    ],
)
def test_for_a_name_that_nothing_has_the_nearest_is_told(tmp_path: Path, name: str, end: str) -> None:
    write(tmp_path)
    with pytest.raises(VerifyError) as raised:
        read_cases(tmp_path, [name])
    assert str(raised.value).endswith(end)


def test_where_nothing_was_run_the_answer_is_inconclusive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, case_toml=b"cannot-run = 'it needs a camera'")
    assert run(tmp_path) == 3
    out = capsys.readouterr().out
    assert "nothing was run" in out
    assert report.ONLY_A_GPU not in out


ESCAPES = """
print("\\x1b[2J\\x07red\\r")
globals()["a\\nb\\x1b[31m"] = 1
raise ValueError("\\x1b]0;title\\x07\\u202eabc")
"""


@pytest.mark.parametrize("form", ["text", "json"])
def test_nothing_that_a_terminal_acts_on_is_printed(
    tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, after_py=ESCAPES.encode())
    write(tmp_path, "rewrites_other", case_toml=b"wants = [{ path = '\\u001b', aspect = 'value' }]", before_py=b"1 / 0")
    write(tmp_path, "rewrites_third", case_toml=b'"\\u001b[31m" = 1')
    assert run(tmp_path, "--format", form, "-v") == 1
    out = capsys.readouterr().out
    assert all(char.isprintable() for char in out.replace("\n", ""))
    assert "\\u001b]0;title" in out if form == "json" else "\\x1b]0;title\\x07\\u202eabc" in out


def test_a_name_of_the_command_line_is_told_without_what_a_terminal_acts_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    assert run(tmp_path, "\x1b[2J\n") == 2
    err = capsys.readouterr().err
    assert "\\x1b[2J\\n" in err
    assert err.count("\n") == 1


def test_printable_text_stays_as_it_is() -> None:
    assert printable("größer → 1…") == "größer → 1…"
    assert printable("a\tb\x00\udc80") == "a\\tb\\x00\\udc80"


def test_whatever_goes_wrong_is_told_on_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("one\ntwo")

    write(tmp_path)
    monkeypatch.setattr(golden, "run_cases", fail)
    assert run(tmp_path) == 2
    err = capsys.readouterr().err
    assert err.startswith("torchmod verify: KeyError: 'one\\ntwo' (test_verify_cli.py, line ")
    assert err.count("\n") == 1


@ON_LINUX
def test_output_that_cannot_be_written_is_no_difference(tmp_path: Path) -> None:
    write(tmp_path)
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "torchmod.verify", "golden", "--golden", str(tmp_path), "--device", "cpu"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 2
    assert ended.stderr.startswith("torchmod verify: OSError: [Errno 28] No space left on device")
    assert ended.stderr.count("\n") == 1
