"""The command line as a user meets it: what it says, where, and with which exit status."""

import ctypes
import io
import json
import os
import random
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from torchmod import __version__, cli

HEAD = "import torch.nn as nn\n"
SAFE, FIXED = f"{HEAD}c = nn.MSELoss(size_average=False)\n", f'{HEAD}c = nn.MSELoss(reduction="sum")\n'
UNSAFE = f"{HEAD}c = nn.MSELoss(size_average=flag)\n"
NOTE = f"{HEAD}c = nn.MSELoss(**options, size_average=False)\n"
BROKEN = f"{HEAD}c = nn.MSELoss(size_average=False\n"
CLEAN = f"{HEAD}c = nn.MSELoss()\n"


class Done(NamedTuple):
    """How a run ended."""

    status: int
    out: str
    err: str


Cli = Callable[..., Done]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def here(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs the command line in this process."""

    def run(*arguments: str, stdin: str | bytes = "") -> Done:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        capfdbinary.readouterr()
        try:
            status = cli.main(arguments)
        except SystemExit as end:
            status = int(end.code or 0)
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return Done(status, out.decode("utf-8", "surrogateescape"), err.decode("utf-8", "surrogateescape"))

    return run


def torchmod(*arguments: str, stdin: bytes = b"", site: Path | None = None, **options: object) -> Done:
    """Runs the command line as a user does. ``site`` holds what else is installed."""
    path = os.pathsep.join(filter(None, [site and str(site), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "torchmod", *arguments],
        input=stdin,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": path} if path else None,
        check=False,
        timeout=60,
        **options,  # type: ignore[call-overload]
    )
    return Done(done.returncode, *(text.decode("utf-8", "surrogateescape") for text in (done.stdout, done.stderr)))


def make(*names: str, text: str | bytes = SAFE) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(text.encode() if isinstance(text, str) else text)


def read(name: str) -> str:
    return Path(name).read_bytes().decode()


# exit status


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CLEAN, (0, 0, 0, 0)),
        (SAFE, (1, 1, 0, 0)),
        (UNSAFE, (1, 0, 1, 0)),
        (NOTE, (0, 0, 0, 0)),
        (BROKEN, (2, 2, 2, 2)),
        (f"{CLEAN}# torchmod: ignore[loss-reduction]\n", (1, 0, 1, 1)),
    ],
    ids=["clean", "safe", "unsafe", "note", "broken", "display"],
)
def test_exit_status(text: str, expected: tuple[int, ...], here: Cli) -> None:
    """Of check, diff, fix and fix with what is unsafe."""
    found = []
    for arguments in (["check"], ["diff"], ["fix"], ["fix", "--unsafe"]):
        make("a.py", text=text)
        found.append(here(*arguments).status)
        assert arguments[0] == "fix" or read("a.py") == text
    assert tuple(found) == expected
    make("a.py", text=text)
    assert here("check", "--unsafe").status == expected[0]


def test_a_broken_file_among_others_is_named_and_the_others_are_done(here: Cli) -> None:
    make("a.py", "c.py")
    make("b.py", text=BROKEN)
    done = here("fix")
    assert done.status == 2
    assert done.err.startswith("cannot look at b.py: line 2: ")
    assert (read("a.py"), read("b.py"), read("c.py")) == (FIXED, BROKEN, FIXED)


def test_notes_count_when_it_is_strict(here: Cli) -> None:
    make("a.py", text=NOTE)
    assert here("check", "--strict").status == 1
    assert here("fix", "--strict").status == 1
    make("a.py", text=CLEAN)
    assert here("check", "--strict").status == 0


def test_a_hook_can_ask_for_a_status_when_something_was_fixed(here: Cli) -> None:
    make("a.py")
    assert here("fix", "--exit-non-zero-on-fix").status == 1
    assert read("a.py") == FIXED
    assert here("fix", "--exit-non-zero-on-fix").status == 0


def test_without_paths_it_is_the_working_folder(here: Cli) -> None:
    make("a.py", "sub/b.py")
    assert [line.split(":")[0] for line in here("check", "-q").out.splitlines()] == ["a.py", "sub/b.py"]


# what is told


def test_the_text_report_of_each_command(here: Cli) -> None:
    make("a.py")
    make("b.py", text=UNSAFE)
    make("c.py", text=NOTE)
    check = here("check")
    assert check.out.splitlines() == [
        "a.py:2:5: loss-reduction [safe] replace `size_average` by `reduction`",
        *(line for line in check.out.splitlines() if line.startswith("b.py:2:5: loss-reduction [unsafe] ")),
        "1 fixable with `torchmod fix`, 1 more with `--unsafe`, 1 note (-v)",
        "3 files checked",
    ]
    diff = here("diff")
    assert diff.out.splitlines()[:2] == ["--- a/a.py", "+++ b/a.py"]
    assert diff.err.splitlines()[0] == "1 finding would be fixed in 1 file"
    fix = here("fix")
    assert fix.out.splitlines()[-3:] == [
        "1 finding fixed in 1 file",
        "1 with `--unsafe`, 1 note (-v)",
        "3 files checked",
    ]
    assert check.err == fix.err == ""


def test_quiet_leaves_out_the_summary_and_verbose_tells_why(here: Cli) -> None:
    make("a.py")
    make("b.py", text=NOTE)
    make("third_party/c.py")
    assert here("check", "-q").out.splitlines() == [
        "a.py:2:5: loss-reduction [safe] replace `size_average` by `reduction`"
    ]
    assert here("diff", "-q").err == ""
    verbose = here("check", "-v")
    assert "    because `nn.MSELoss` is torch.nn.MSELoss\n" in verbose.out
    assert "b.py:2:5: loss-reduction [note] its `**` argument may hold another flag\n" in verbose.out
    assert "     1  loss-reduction: its `**` argument may hold another flag\n" in verbose.out
    assert verbose.err == "skipped third_party: holds copies of other projects (excluded by default)\n"


def test_json_is_one_object_on_standard_output_and_nothing_else_is_said(here: Cli) -> None:
    make("a.py")
    make("b.py", text=BROKEN)
    make("third_party/c.py")
    done = here("check", "--format", "json")
    assert (done.status, done.err) == (2, "")
    told = json.loads(done.out)
    assert told["files"] == {"checked": 1, "changed": 0, "skipped": 2, "failed": 0}
    assert [(one["path"], one["kind"]) for one in told["problems"]] == [("b.py", "skipped"), ("third_party", "skipped")]
    (one,) = told["findings"]
    assert {
        key: one[key] for key in ("path", "line", "column", "end_line", "end_column", "applicability", "fixed")
    } == {
        "path": "a.py",
        "line": 2,
        "column": 5,
        "end_line": 2,
        "end_column": 35,
        "applicability": "safe",
        "fixed": False,
    }


@pytest.mark.parametrize("text", [SAFE, SAFE.replace("\n", "\r\n"), f"\ufeff# caf\u00e9 \U0001f600\n{SAFE}"])
def test_the_edits_in_json_make_the_new_file_from_the_old(text: str, here: Cli) -> None:
    """Offsets count code points of the text without its BOM, and a CRLF as two."""
    make("a.py", text=text)
    for command in ("check", "fix"):
        told = json.loads(here(command, "--format", "json").out)["findings"][0]
        assert told["fixed"] is (command == "fix")
        new = text.removeprefix("\ufeff")
        for edit in sorted(told["fix"]["edits"], key=lambda edit: -edit["start"]):
            new = new[: edit["start"]] + edit["text"] + new[edit["end"] :]
        assert new == text.removeprefix("\ufeff").replace("size_average=False", 'reduction="sum"')
    assert read("a.py") == "\ufeff" * text.startswith("\ufeff") + new


def test_github_annotations(here: Cli) -> None:
    make("a.py")
    make("b.py", text=BROKEN)
    done = here("check", "--format", "github")
    assert done.out.splitlines() == [
        "::warning file=a.py,line=2,endLine=2,col=5,endColumn=35,title=loss-reduction"
        "::replace `size_average` by `reduction` [safe]",
        next(line for line in done.out.splitlines() if line.startswith("::error file=b.py,title=torchmod::line 2: ")),
    ]


def test_a_report_goes_to_the_file_that_is_named(here: Cli) -> None:
    make("a.py")
    for command, form in (("check", "text"), ("check", "json"), ("check", "github"), ("diff", "text")):
        expected = here(command, "--format", form).out
        done = here(command, "--format", form, "--output", "report")
        assert (done.status, done.out) == (1, "")
        assert read("report") == expected
    assert (
        here("check", "--output", "no/where").err == "torchmod: no/where cannot be written: No such file or directory\n"
    )


def test_colours_are_for_terminals_or_on_demand_and_never_in_a_file(here: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    make("a.py")
    plain = {command: here(command).out for command in ("check", "diff")}
    assert not any("\033" in text for text in plain.values())
    monkeypatch.setenv("FORCE_COLOR", "1")
    for command, text in plain.items():
        painted = here(command).out
        assert painted != text
        assert re.sub(r"\033\[\d+m", "", painted) == text
        here(command, "--output", "report")
        assert "\033" not in read("report")
    monkeypatch.setenv("NO_COLOR", "1")
    assert {command: here(command).out for command in plain} == plain


def test_show_files_lists_what_would_be_looked_at_and_stops(here: Cli) -> None:
    make("a.py", "sub/b.py", "old/c.py", "third_party/d.py")
    done = here("fix", "--show-files", "--exclude", "old")
    assert (done.status, done.out, done.err) == (0, "a.py\nsub/b.py\n", "")
    assert "skipped third_party: " in here("check", "--show-files", "-v").err
    assert read("a.py") == SAFE


def test_force_exclude_holds_for_files_that_are_named(here: Cli) -> None:
    make("old/a.py", "b.py")
    make("torchmod.toml", text='extend-exclude = ["old"]')
    assert here("fix", "old/a.py", "b.py", "--show-files").out == "b.py\nold/a.py\n"
    assert here("fix", "old/a.py", "b.py", "--force-exclude").status == 0
    assert (read("old/a.py"), read("b.py")) == (SAFE, FIXED)
    assert here("fix", "old/a.py", "--force-exclude", "-q") == Done(0, "", "")


def test_a_folder_without_python_is_said_so_and_is_no_error(here: Cli) -> None:
    make("sub/notes.txt")
    assert here("check", "sub").err == "torchmod: no Python files under sub\n"
    assert here("check", "sub").status == 0
    assert here("check", "sub", "-q") == Done(0, "", "")


def test_select_ignore_target_and_levels_reach_the_transforms(here: Cli) -> None:
    make("a.py")
    assert here("check", "--ignore", "loss").status == 0
    assert here("check", "--select", "unused-suppression").status == 0
    assert here("check", "--select", "unused-suppression", "--extend-select", "deprecated").status == 1
    old = here("check", "--target", "0.3", "-v")
    assert old.status == 0
    assert "[note] the new form needs torch 1.0, the target is 0.3\n" in old.out
    assert here("check", "--target", "1").status == 1


def test_the_configuration_is_that_of_the_first_path_unless_it_is_named_or_not_wanted(here: Cli) -> None:
    make("sub/a.py")
    make("sub/torchmod.toml", text='ignore = ["loss"]')
    make("other.toml", text='select = ["loss"]')
    assert here("check", "sub").status == here("check", "sub/a.py").status == 0
    assert here("check").status == 1
    assert here("check", "sub", "--isolated").status == here("check", "sub", "--config", "other.toml").status == 1
    assert here("check", "--config", "sub/torchmod.toml").status == 0


# suppressions


@pytest.mark.parametrize(
    "text",
    [
        SAFE.replace("e)", "e)  # torchmod: ignore[loss-reduction]"),
        SAFE.replace("e)", "e)  # we want both  # torchmod: ignore[loss-reduction]"),
        f"{HEAD}c = nn.MSELoss(\n    size_average=False,  # torchmod: ignore[loss-reduction]\n)\n",
        f'"""Doc."""\n# torchmod: ignore-file[loss-reduction]\n{SAFE}',
    ],
)
def test_suppressions_silence(text: str, here: Cli) -> None:
    make("a.py", text=text)
    assert here("check", "-q") == Done(0, "", "")
    assert here("fix").status == 0
    assert read("a.py") == text


@pytest.mark.parametrize(
    ("comment", "told"),
    [
        ("ignore[loss-reduction]", "`loss-reduction` has nothing to silence here: remove it"),
        ("ignore", "name what to silence, as in `# torchmod: ignore[name]`"),
        ("ignore[los-reduction]", "there is no transform called `los-reduction`; did you mean `loss-reduction`?"),
        ("ignore-file[loss-reduction]", "`ignore-file` belongs at the top of the file, before the first statement"),
        ("skip", "write `# torchmod: ignore[name]` or `# torchmod: ignore-file[name]`"),
    ],
)
def test_suppressions_without_use_are_findings_unless_they_are_not_wanted(comment: str, told: str, here: Cli) -> None:
    make("a.py", text=f"{SAFE}x = 1  # torchmod: {comment}\n")
    assert here("check", "-q").out.splitlines()[1:] == [f"a.py:3:8: unused-suppression [display] {told}"]
    assert here("fix").status == 1
    assert here("fix", "--ignore", "unused-suppression").status == 0
    assert read("a.py") == f"{FIXED}x = 1  # torchmod: {comment}\n"


# standard input


def test_standard_input_goes_to_standard_output_with_the_status_of_diff(here: Cli) -> None:
    assert here("fix", "-", stdin=SAFE) == Done(1, FIXED, "")
    assert here("fix", "-", stdin=CLEAN) == Done(0, CLEAN, "")
    assert here("fix", "-", stdin=UNSAFE) == Done(0, UNSAFE, "")
    assert here("fix", "-", "--unsafe", stdin=UNSAFE).status == 1
    assert here("fix", "-", stdin="") == Done(0, "", "")
    broken = here("fix", "-", stdin=BROKEN)
    assert (broken.status, broken.out) == (2, BROKEN)
    assert broken.err.startswith("cannot look at stdin.py: line 2: ")


def test_standard_input_keeps_every_byte_that_is_not_edited(here: Cli) -> None:
    data = b"# coding: latin-1\r\n# \xe9\xff\x0c\r\n" + SAFE.replace("\n", "\r\n").encode().rstrip()
    done = here("fix", "-", stdin=data)
    assert done.out.encode("utf-8", "surrogateescape") == data.replace(b"size_average=False", b'reduction="sum"')


def test_standard_input_can_be_checked_and_compared_under_the_name_of_a_file(here: Cli) -> None:
    check = here("check", "-", "--stdin-filename", "src/train.py", stdin=SAFE)
    assert check.status == 1
    assert check.out.startswith("src/train.py:2:5: loss-reduction [safe] ")
    diff = here("diff", "-", "--stdin-filename", "src/train.py", stdin=SAFE)
    assert diff.status == 1
    assert diff.out.startswith("--- a/src/train.py\n+++ b/src/train.py\n")
    assert json.loads(here("check", "-", "--format", "json", stdin=SAFE).out)["findings"][0]["path"] == "stdin.py"


def test_the_report_on_standard_input_needs_a_place_of_its_own(here: Cli) -> None:
    done = here("fix", "-", "--format", "json", stdin=SAFE)
    assert (done.status, done.out) == (2, "")
    assert done.err == "torchmod: standard output is for the result: name a file for the report, with --output\n"
    done = here("fix", "-", "--format", "json", "--output", "report.json", stdin=SAFE)
    assert (done.status, done.out) == (1, FIXED)
    assert json.loads(read("report.json"))["findings"][0]["fixed"] is True


def test_standard_input_goes_with_no_other_path(here: Cli) -> None:
    make("a.py")
    assert here("check", "-", "a.py") == Done(2, "", "torchmod: `-` (standard input) goes with no other path\n")


# other commands


def test_version_help_list_and_explain(here: Cli) -> None:
    assert here("--version").out == f"torchmod {__version__}\n"
    assert all(word in here("--help").out for word in ("check", "diff", "fix", "list", "explain", "exit status"))
    assert here("list").out.startswith("loss-reduction ")
    explained = here("explain", "loss-reduction")
    assert explained.status == 0
    assert "reduction" in explained.out


def test_authors_start_a_transform_where_transforms_are(here: Cli) -> None:
    make("transforms/__init__.py", "golden/x/y.py")
    done = here("new", "old-thing")
    assert done.status == 0
    assert "wrote transforms/old_thing.py" in done.out.splitlines()
    assert here("new", "old-thing").status == 2


# what users get wrong


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("", "the following arguments are required: COMMAND"),
        ("chek .", "invalid choice: 'chek' (choose from "),
        ("chek .", "; did you mean `check`?"),
        ("check --selct loss", "unrecognized arguments: --selct; did you mean `--select`?"),
        ("fix --unsave", "; did you mean `--unsafe`?"),
        ("check --targt=1.0", "; did you mean `--target`?"),
        ("check --exit-non-zero-on-fix", "unrecognized arguments: --exit-non-zero-on-fix; it belongs to `fix`"),
        ("check -x", "unrecognized arguments: -x\n"),
        ("check --uns", "; did you mean `--unsafe`?"),
        ("check --format jsn", "; did you mean `json`?"),
        ("check --format", "argument --format: expected one argument"),
        ("check --jobs two", "argument --jobs: invalid int value: 'two'"),
        ("check --jobs -1", "`jobs` must be 0 (one for each processor) or more"),
        (
            "check --select loss-reductoin",
            "no transform or tag called `loss-reductoin`; did you mean `loss-reduction`?",
        ),
        ("check --ignore los", "no transform or tag called `los`; did you mean `loss`?"),
        ("explain loss-reductoin", "did you mean `loss-reduction`?"),
        ("check --target newest", "`target`: `newest` is not a version: write it like 1.10 or 0.4.1"),
        ("check --written-for 0.3.x", "`written-for`: `0.3.x` is not a version"),
        ("check --config nope.toml", "nope.toml: cannot be read: No such file or directory"),
        ("check nope.py", "nope.py: there is no such file or folder"),
        ("check a.py nope", "nope: there is no such file or folder"),
    ],
)
def test_a_mistake_is_named_with_the_nearest_right_word(arguments: str, told: str) -> None:
    make("a.py")
    done = torchmod(*arguments.split())
    assert (done.status, done.out) == (2, "")
    assert told in done.err
    assert done.err.startswith("torchmod: ")
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("job = 2", "there is no setting `job`; did you mean `jobs`?"),
        ("plugins = ['house']", "there is no plugin `house` (entry point group torchmod.transforms;"),
        ("required-version = '>=99'", "torchmod >=99 is required"),
    ],
)
def test_a_mistake_in_the_configuration_is_named(text: str, told: str) -> None:
    make("a.py")
    make("torchmod.toml", text=text)
    done = torchmod("fix")
    assert (done.status, done.out) == (2, "")
    assert told in done.err
    assert read("a.py") == SAFE


BAD = {
    "binary.py": bytes(range(256)) * 20 + SAFE.encode(),
    "elf.py": b"\x7fELF\x02\x01\x01" + bytes(range(1, 256)) + b"torch MSELoss",
    "null.py": SAFE.encode() + b"x = '\0'\n",
    "nested.py": SAFE.encode() + b"x = " + b"[" * 2000 + b"]" * 2000 + b"\n",
    "chained.py": SAFE.encode() + b"x = a" + b".b()" * 5000 + b"\n",
    "chained_flag.py": HEAD.encode() + b"c = nn.MSELoss(size_average=a" + b".b()" * 5000 + b")\n",
    "added.py": SAFE.encode() + b"x = " + b" + ".join([b"x"] * 10_000) + b"\n",
    "surrogate.py": HEAD.encode() + b"s = '\xed\xa0\x80'\nc = nn.MSELoss(size_average=False)\n",
    "latin.py": b"# caf\xe9\n" + SAFE.encode(),
    "unknown_encoding.py": b"# coding: klingon\n" + SAFE.encode(),
    "tabs.py": SAFE.encode() + b"if x:\n\ty\n        z\n",
    "python2.py": SAFE.encode() + b"print 'torch MSELoss'\n",
}


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_bad_files_are_named_left_as_they_were_and_hold_nothing_up(jobs: str) -> None:
    for name, data in BAD.items():
        make(name, text=data)
    make("good.py")
    done = torchmod("fix", ".", "--jobs", jobs)
    assert done.status == 2
    told = {line.split(": ", 1)[0]: line.split(": ", 1)[1] for line in done.err.splitlines()}
    assert set(told) == {f"cannot look at {name}" for name in BAD}
    assert all(told.values())
    assert {name: Path(name).read_bytes() for name in BAD} == BAD
    assert read("good.py") == FIXED


def test_deep_and_odd_files_that_python_can_read_are_done() -> None:
    """What one Python parses another may find too deep: then the file is named."""
    branches = "".join(f"elif x == {n}:\n    pass\n" for n in range(5000))
    make("elif.py", text=f"{SAFE}if x:\n    pass\n{branches}")
    make("escape.py", text=f'{SAFE}s = "\\ud800"  # \\udcff\n')
    make("brackets.py", text=f"{HEAD}c = nn.MSELoss(size_average={'(' * 80}False{')' * 80})\n")
    done = torchmod("fix", ".")
    assert "Traceback" not in done.err
    assert read("escape.py") == f'{FIXED}s = "\\ud800"  # \\udcff\n'
    assert read("brackets.py") == FIXED
    if done.status:
        assert done.err == "cannot look at elif.py: it is nested too deeply for Python's own parser\n"
    assert read("elif.py").startswith(SAFE if done.status else FIXED)


def test_a_file_of_20_megabytes_is_left_out_with_the_reason() -> None:
    make("big.py", text=SAFE * 350_000)
    make("good.py")
    done = torchmod("fix", ".", "-v")
    assert done.status == 0
    assert done.err == "skipped big.py: larger than 5,000,000 bytes (the setting max-file-size)\n"
    assert read("good.py") == FIXED


def test_a_symlink_loop_is_no_problem() -> None:
    make("sub/a.py")
    os.symlink("..", "sub/up")
    os.symlink("loop.py", "loop.py")
    done = torchmod("fix", ".", "-v")
    assert done.status == 0
    assert done.err == "skipped loop.py: a symbolic link\n"
    assert read("sub/a.py") == FIXED
    assert torchmod("fix", "loop.py").err == "torchmod: loop.py: Too many levels of symbolic links\n"


EVIL = [
    *("copy", "rich", "libcst", "transforms", "bowler", "ast", "argparse", "dataclasses", "tomllib", "difflib", "json"),
    *("multiprocessing", "concurrent", "tempfile", "shutil", "gc", "importlib", "sitecustomize"),
]


@pytest.mark.parametrize("how", ["console script", "-P -m", "-m"])
def test_nothing_in_the_working_folder_is_ever_run(how: str) -> None:
    make(*(f"{name}.py" for name in EVIL), text=f'open("marker", "a").write(__name__)\n{SAFE}')
    command = [sys.executable, *how.split(), "torchmod"]
    if how == "console script":
        script = Path(sys.executable).with_name("torchmod")
        if not script.exists():
            pytest.skip("the console script is not installed beside this interpreter")
        command = [str(script)]
    for arguments in (
        ["fix", ".", "--jobs", "2"],
        ["check", "-", "--format", "json"],
        ["list"],
        ["explain", "loss-reduction"],
    ):
        environment = {**os.environ, "FORCE_COLOR": "1"}
        done = subprocess.run(
            [*command, *arguments], input=SAFE.encode(), capture_output=True, env=environment, check=False
        )
        assert done.returncode in (0, 1), done.stderr
        assert not Path("marker").exists(), read("marker")
    assert read("copy.py").endswith(FIXED)


# folders and disks


def unprivileged() -> None:
    """In a child that is about to start: root, too, is bound by permissions when it has lost two capabilities."""
    if os.geteuid() == 0:
        drop = 24  # PR_CAPBSET_DROP
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            if ctypes.CDLL(None).prctl(drop, capability, 0, 0, 0) != 0:
                os._exit(99)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="permissions are tried on Linux only")
def test_without_permission_files_are_named_and_left_and_the_rest_is_done() -> None:
    make("good.py", "secret.py", "frozen.py", "shut/a.py", "read_only/a.py")
    os.chmod("secret.py", 0)
    os.chmod("frozen.py", 0o444)
    os.chmod("shut", 0)
    os.chmod("read_only", 0o555)
    try:
        done = torchmod("fix", ".", preexec_fn=unprivileged)
        if done.status == 99:
            pytest.skip("root cannot give up its privileges here")
        assert done.status == 2
        assert done.err.splitlines() == [
            "failed frozen.py: cannot be written: no permission to write it",
            "failed read_only/a.py: cannot be written: Permission denied",
            "cannot look at secret.py: cannot be read: Permission denied",
            "cannot look at shut: cannot be listed: Permission denied",
        ]
        assert "2 unreadable, 2 failed" in done.out
        assert (read("good.py"), read("read_only/a.py"), read("frozen.py")) == (FIXED, SAFE, SAFE)
        assert os.listdir("read_only") == ["a.py"]
        named = torchmod("fix", "shut/a.py", preexec_fn=unprivileged)
        assert named == Done(2, "", "torchmod: shut/a.py: Permission denied\n")
        listed = torchmod("check", ".", "--show-files", preexec_fn=unprivileged)
        assert (listed.status, listed.err) == (2, "skipped shut: cannot be listed: Permission denied\n")
    finally:
        os.chmod("shut", 0o755)
        os.chmod("read_only", 0o755)


FULL_DISK = """
mount -t tmpfs -o size=64k tmpfs "$1" || exit 99
cd "$1" || exit 99
cp "$2" a.py && cp "$2" b.py && ln b.py linked.txt || exit 99
head -c 65536 /dev/zero > filler
"$3" -P -m torchmod fix . ; echo "status $?"
"$3" -P -m torchmod check . --output report ; echo "status $?"
cmp a.py "$2" && cmp b.py "$2" && cmp linked.txt "$2" && ls -A
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a small disk is made on Linux only")
def test_a_full_disk_costs_nothing_but_the_change(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    make("old.py", text=f"{UNSAFE}{SAFE}" + f"#{'x' * 3900}\n")
    command = ["unshare", "-m", "sh", "-c", FULL_DISK, "sh", str(tmp_path / "disk"), str(Path("old.py").resolve())]
    try:
        done = subprocess.run([*command, sys.executable], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no `unshare` to mount a small disk with")
    if "status" not in done.stdout:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    assert done.stdout.splitlines()[-6:] == ["status 2", "status 2", "a.py", "b.py", "filler", "linked.txt"]
    told = [line for line in done.stderr.splitlines() if "torchmod" in line or line.startswith("failed")]
    assert told == [
        "failed a.py: cannot be written: No space left on device",
        "failed b.py: cannot be written: No space left on device",
        "torchmod: report cannot be written: No space left on device",
    ]


def test_standard_output_on_a_full_disk_is_said_so() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    make("a.py")
    for arguments in (["check", "--format", "json"], ["diff", "-q"], ["check", "--show-files"]):
        with open("/dev/full", "wb") as full:
            command = [sys.executable, "-P", "-m", "torchmod", *arguments]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 2, arguments
        assert done.stderr == b"torchmod: standard output: No space left on device\n"


@pytest.mark.parametrize("buffered", [True, False])
def test_a_reader_that_goes_away_is_no_traceback(buffered: bool) -> None:
    make("a.py", text=SAFE + "d = nn.MSELoss(size_average=False)\n" * 800)
    child = subprocess.Popen(
        [sys.executable, *([] if buffered else ["-u"]), "-P", "-m", "torchmod", "check", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.read(10)
    child.stdout.close()
    assert child.stderr.read() == b""
    child.stderr.close()
    assert child.wait() == 2


def test_names_that_are_no_text_are_told_as_they_are() -> None:
    name = os.fsdecode(b"caf\xe9.py")
    make(name)
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    for arguments in (["check"], ["check", "--format", "github"], ["diff"], ["check", "--show-files"]):
        command = [sys.executable, "-P", "-m", "torchmod", *arguments]
        done = subprocess.run(command, capture_output=True, env=ascii_only, check=False)
        assert b"Traceback" not in done.stderr, done.stderr
        assert b"caf\xe9.py" in done.stdout, arguments


# plugins


def install(site: Path, name: str, **modules: str) -> None:
    """A distribution as pip leaves it: a package of some modules, and the metadata with its entry point."""
    (site / name).mkdir(parents=True)
    (site / name / "__init__.py").write_text(modules.pop("__init__", ""), encoding="utf-8")
    for module, code in modules.items():
        (site / name / f"{module}.py").write_text(f'"""{module}."""\n{textwrap.dedent(code)}', encoding="utf-8")
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[torchmod.transforms]\n{name} = {name}\n", encoding="utf-8")


RENAME = """
    import ast
    from torchmod.api import Edit, Fix, transform

    @transform(module=True, names=("old_thing",), since="1.0", tags=("house",))
    def rename(module):
        if "# raise" in module.source.text:
            raise ValueError("cannot bear it")
        text = "new_thing +" if "# guard" in module.source.text else "new_thing"
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and node.attr == "old_thing":
                span = module.source.span(node)
                fix = Fix((Edit(span.end - 9, span.end, text),))
                yield module.safe_fix("rename it", fix, at=span, evidence=["it is old"])
"""
SHELL = """
    from torchmod.api import Edit, Fix, Span, transform

    @transform(documents=("*.sh", "Dockerfile"), since="1.0")
    def shell(document):
        at = document.text.find("--old")
        if at >= 0:
            yield document.safe_fix("an old option", Fix((Edit(at, at + 5, "--new"),)), at=Span(at, at + 5))
"""
WRAP = """
    import ast
    from torchmod.api import Fix, transform

    @transform(module=True, names=("volatile",), since="1.0")
    def wrap(module):
        for call in module.names.calls:
            statement = module.names.parents[call]
            if getattr(call.func, "id", "") != "volatile" or isinstance(module.names.parents[statement], ast.With):
                continue

            def build(statement=statement):
                name, needs = module.import_name("torch.no_grad", statement)
                edits, wrapper = module.wrap(statement, statement, f"with {name}():")
                return Fix(edits, needs, (wrapper,))

            yield module.safe_fix("wrap it", build, at=module.source.span(statement))
"""
DEVICE = """
    import ast
    from torchmod.api import Edit, Fix, Need, transform

    @transform(module=True, names=("cuda",), since="1.0", anchors=())
    def device(module):
        for call in module.names.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda":
                start, end = module.source.span(call.func.value).end, module.source.span(call).end
                torch, needs = module.import_name("torch", call)
                made = Need(f'device = {torch}.device("cpu")', is_import=False)
                yield module.safe_fix("to the device", Fix((Edit(start, end, ".to(device)"),), (*needs, made)))
"""
OLD_THING = "import torch\ntorch.old_thing\n"
NEW_THING = "import torch\ntorch.new_thing\n"


@pytest.fixture
def house(tmp_path: Path) -> Callable[..., Done]:
    """Runs the command line with a plugin installed and named in the configuration."""
    install(tmp_path / "site", "house", rename=RENAME, shell=SHELL, wrap=WRAP, device=DEVICE)
    make("torchmod.toml", text='plugins = ["house"]')

    def run(*arguments: str, **options: object) -> Done:
        return torchmod(*arguments, site=tmp_path / "site", **options)

    return run


def test_an_installed_plugin_works_in_every_command(house: Callable[..., Done]) -> None:
    make("a.py", text=OLD_THING)
    make("b.py", text=SAFE)
    assert [line.split()[0] for line in house("list").out.splitlines()] == [
        *("device", "loss-reduction", "rename", "shell", "wrap")
    ]
    assert "rename." in house("explain", "rename").out
    check = house("check", "-v")
    assert check.status == 1
    assert check.out.startswith("a.py:2:1: rename [safe] rename it\n    because it is old\n")
    assert house("check", "--select", "house", "-q").out == "a.py:2:1: rename [safe] rename it\n"
    assert "+torch.new_thing\n" in house("diff").out
    assert house("fix").status == 0
    assert (read("a.py"), read("b.py")) == (NEW_THING, FIXED)
    assert house("check").status == 0


def test_a_plugin_that_is_not_named_is_not_even_imported(tmp_path: Path) -> None:
    install(tmp_path / "site", "house", rename="raise RuntimeError")
    make("a.py", text=OLD_THING + SAFE)
    assert torchmod("fix", site=tmp_path / "site").status == 0
    assert read("a.py") == OLD_THING + FIXED


@pytest.mark.parametrize("module", ["__init__", "rename"])
def test_a_plugin_that_raises_on_import_is_named(module: str, tmp_path: Path) -> None:
    install(tmp_path / "site", "house", **{module: "raise RuntimeError('no house today')"})
    make("torchmod.toml", text='plugins = ["house"]')
    make("a.py")
    for command in ("check", "fix", "list"):
        done = torchmod(command, site=tmp_path / "site")
        assert (done.status, done.out) == (2, "")
        assert done.err.count("\n") == 1
        assert re.match(r"torchmod: .*house.* cannot be imported: RuntimeError: no house today$", done.err)
    assert read("a.py") == SAFE


def test_a_transform_that_raises_leaves_its_file_and_names_it(house: Callable[..., Done]) -> None:
    make("a.py", "c.py", text=OLD_THING)
    make("b.py", text=f"{OLD_THING}# raise\n")
    done = house("fix")
    assert done.status == 2
    assert re.fullmatch(
        r"failed b\.py: transform rename raised ValueError at rename\.py:\d+: cannot bear it\n", done.err
    )
    assert (read("a.py"), read("b.py"), read("c.py")) == (NEW_THING, f"{OLD_THING}# raise\n", NEW_THING)
    told = json.loads(house("check", "--format", "json").out)
    assert [(one["path"], one["kind"]) for one in told["problems"]] == [("b.py", "failed")]


def test_a_fix_that_fails_a_guard_leaves_its_file_and_names_it(house: Callable[..., Done]) -> None:
    make("a.py", text=OLD_THING)
    make("b.py", text=f"{OLD_THING}# guard\n")
    done = house("fix")
    assert done.status == 2
    assert done.err.startswith("failed b.py: left as it was: the new text is no longer Python: line 2: ")
    assert (read("a.py"), read("b.py")) == (NEW_THING, f"{OLD_THING}# guard\n")


def test_documents_that_are_not_python_are_fixed_byte_for_byte(house: Callable[..., Done]) -> None:
    make("run.sh", "sub/Dockerfile", text="#!/bin/sh\r\ntrain --old 1  # \u00e9\r\n")
    make("other.txt", text="train --old 1\n")
    assert house("check", "-q").out.splitlines() == [
        "run.sh:2:7: shell [safe] an old option",
        "sub/Dockerfile:2:7: shell [safe] an old option",
    ]
    assert house("fix").status == 0
    assert read("run.sh") == read("sub/Dockerfile") == "#!/bin/sh\r\ntrain --new 1  # \u00e9\r\n"
    assert read("other.txt") == "train --old 1\n"


def test_a_document_is_not_shown_to_a_transform_that_reads_others(house: Callable[..., Done]) -> None:
    make("other.txt", text="train --old 1\n")
    assert house("fix", "other.txt").status == 0
    assert read("other.txt") == "train --old 1\n"


def test_a_statement_is_put_under_a_header_with_the_import_it_needs(house: Callable[..., Done]) -> None:
    make("a.py", text="import os, torch.nn as nn\n\ndef f():\n\tvolatile('''\n  text''')  # why\n\treturn 1\n")
    assert house("fix").status == 0
    assert read("a.py") == (
        "import os, torch.nn as nn\nimport torch\n\ndef f():\n\twith torch.no_grad():\n"
        "\t\tvolatile('''\n  text''')  # why\n\treturn 1\n"
    )


def test_what_fixes_need_is_written_once(house: Callable[..., Done]) -> None:
    make("a.py", text='"""Doc."""\nimport os\n\nx = y.cuda()\nz = y.cuda(1)\n')
    assert house("fix").status == 0
    assert read("a.py") == (
        '"""Doc."""\nimport os\nimport torch\ndevice = torch.device("cpu")\n\nx = y.to(device)\nz = y.to(device)\n'
    )


# determinism


def test_the_same_bytes_and_the_same_json_in_any_order_over_any_number_of_processes() -> None:
    dice = random.Random(0)
    names = [f"{folder}/{number}.py" for folder in "abc" for number in range(5)]
    results = []
    for jobs in ("1", "2", "2"):
        for number, name in enumerate(names):
            make(name, text=SAFE + UNSAFE * (number % 3) + "x = 1\n" * number)
        make("a/broken.py", text=BROKEN)
        paths = dice.sample([*names, "a"], len(names) + 1)
        told = torchmod("fix", *paths, "--jobs", jobs, "--unsafe", "--format", "json").out
        results.append((told, {name: read(name) for name in names}))
    assert results[0] == results[1] == results[2]
    assert len(json.loads(results[0][0])["findings"]) == 30
    assert json.loads(results[0][0])["files"] == {"checked": 15, "changed": 15, "skipped": 1, "failed": 0}


# the start


LATE = [
    *("libcst", "bowler", "fissix", "rich", "torch", "pathspec", "importlib.metadata", "tomllib", "ast", "tokenize"),
    *("concurrent.futures", "multiprocessing", "difflib", "json", "tempfile", "torchmod.engine", "torchmod.transforms"),
]
"""What a file without a target name must not pay for, unless `dataclasses` or `argparse` already do."""


@pytest.mark.parametrize("text", [CLEAN.replace("MSELoss", "Linear"), "print(1)\n", ""])
def test_a_file_without_target_names_is_passed_without_importing_what_is_slow(text: str) -> None:
    make("a.py", text=text)
    make(".gitignore", text="*.txt\n")
    Path(".git").mkdir()
    code = f"""
import argparse, dataclasses, sys
before = set(sys.modules)
import torchmod.cli
for arguments in (["check", "a.py"], ["fix", "a.py", "-q"], ["diff", "a.py", "--jobs", "2"]):
    assert torchmod.cli.main(arguments) == 0
print([name for name in {LATE} if name in sys.modules and name not in before])
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
