"""The benchmark: torchmod beside ruff, ast-grep and TorchFix, on the same files and in turn; and torchmod's budgets.

    python tests/bench/bench.py [TREE ...]

The peers come from PyPI, each into a virtual environment of its own, which is kept for the next time; torchmod is
installed from this checkout, as a user gets it. Without a TREE one is made up. Nothing in a TREE is written to. Needs
Python 3.11 on Linux or macOS. The exit status is 0, also when a budget is missed; 2 when something could not run.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from installing import command_of, install_peers, install_torchmod, interpreter_of
from old_code import legacy_code, plain_code, write_tree
from running import RSS_UNIT, Contender, CouldNotRun, Result, must, race, say, warm_up

PATTERN = "$X.cuda()"
AST_GREP, RUFF = "ast-grep, one pattern", "ruff, its own rules"
CHECK, TORCHFIX = "torchmod check, the sample", "torchfix, the sample"
BARE, NO_TARGET = "python -c pass", "torchmod check, no target"
PARENT_MEMORY = """
import resource, sys
from torchmod.__main__ import main
status = main()
print("\\npeak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.exit(status)
"""


class Budget(NamedTuple):
    """What was measured beside what it may be at most (with ``least``: must be at least)."""

    name: str
    measured: float
    limit: float
    unit: str
    note: str = ""
    least: bool = False


# what is run


def tree_contenders(
    torchmod: Sequence[str], peers: dict[str, str], trees: Sequence[Path], sample: Sequence[Path]
) -> Iterator[Contender]:
    """Everybody on the same trees; TorchFix, which is slow, on a sample, and torchmod once on that too."""
    lines, places = lines_of(python_files(trees)), [str(tree) for tree in trees]
    ast_grep = (peers["ast-grep"], "run", "-p", PATTERN, "-l", "python", "--inspect", "summary", *places)
    ruff = (peers["ruff"], "check", "--isolated", "--no-cache", *places)
    yield Contender(AST_GREP, ast_grep, lines, tells=r"scannedFileCount=\d+")
    yield Contender(RUFF, ruff, lines, tells=r"^Found \d+ errors?|^All checks passed")
    for jobs in ("", " --jobs 1", " --jobs 2"):
        yield check(f"torchmod check{jobs}", torchmod, [*jobs.split(), *places], lines)
    if sample:
        files, few = [str(path) for path in sample], lines_of(sample)
        yield check(CHECK, torchmod, files, few)
        yield Contender(TORCHFIX, (peers["torchfix"], *files), few, tells=r"^Finished checking \d+ files")


def check(name: str, torchmod: Sequence[str], arguments: Sequence[str], lines: int) -> Contender:
    """``torchmod check``; a status of 2 is fine, since some file of an old tree is always unreadable."""
    return Contender(name, (*torchmod, "check", *arguments), lines, (0, 1, 2), r"^\d+ files? checked.*")


def start_contenders(torchmod: Sequence[str], scratch: Path) -> list[Contender]:
    """A bare interpreter; and torchmod on one file, without and with something to fix."""
    plain = scratch / "plain.py"
    plain.write_text(plain_code(100))
    return [
        Contender(BARE, (interpreter_of(torchmod), "-c", "pass"), fine=(0,)),
        Contender(NO_TARGET, (*torchmod, "check", str(plain)), fine=(0,), tells="nothing to do"),
        *both("one file", torchmod, scratch / "legacy.py", legacy_code(20)),
    ]


def growth_contenders(torchmod: Sequence[str], scratch: Path, lines: int) -> list[Contender]:
    """A file of old code, and one ten times as long."""
    return [
        *both("N lines", torchmod, scratch / "short.py", legacy_code(lines)),
        *both("10 N lines", torchmod, scratch / "long.py", legacy_code(10 * lines)),
    ]


def both(name: str, torchmod: Sequence[str], path: Path, text: str) -> Iterator[Contender]:
    """``check`` and ``fix`` of one file with something to fix; a fresh copy each time."""
    for command, tells in (("check", r"\d+ fixable"), ("fix", r"\d+ findings? fixed")):
        yield Contender(
            f"torchmod {command}, {name}",
            (*torchmod, command, str(path)),
            text.count("\n"),
            tells=tells,
            prepare=lambda: path.write_text(text),
        )


def python_files(trees: Iterable[Path]) -> list[Path]:
    """The Python files under some folders, sorted."""
    found = (path for tree in trees for path in ([tree] if tree.is_file() else tree.rglob("*.py")))
    return sorted({path for path in found if path.is_file()})


def lines_of(files: Iterable[Path]) -> int:
    """How many lines some files hold."""
    return sum(path.read_bytes().count(b"\n") for path in files)


def sample_of(files: Sequence[Path], count: int) -> list[Path]:
    """Up to ``count`` files, spread evenly, so that every repository of a tree has its share."""
    count = min(count, len(files))
    return [files[index * len(files) // count] for index in range(count)]


# the budgets


def tree_budgets(results: dict[str, Result]) -> Iterator[Budget]:
    """What is asked of a run over a tree."""
    mine, alone, two = (results[f"torchmod check{jobs}"] for jobs in ("", " --jobs 1", " --jobs 2"))
    note = "4x with the whole catalogue"
    yield Budget("check of a tree, to ast-grep's one pattern", mine.seconds / results[AST_GREP].seconds, 2.5, "x", note)
    if TORCHFIX in results:
        slow = results[TORCHFIX].rate
        note = f"{results[CHECK].rate / slow:,.0f}x on the sample, with the start"
        yield Budget("lines a second, to TorchFix's", mine.rate / slow, 100, "x", note, least=True)
    note = "only the files that pass the prefilter are shared out"
    yield Budget("two processes, to one", alone.seconds / two.seconds, 1.7, "x", note, least=True)


def memory_budgets(torchmod: Sequence[str], trees: Sequence[Path]) -> Iterator[Budget]:
    """How much torchmod's own process may hold; its workers are not counted."""
    for jobs in ("", " --jobs 1"):
        inside = (interpreter_of(torchmod), "-P", "-c", PARENT_MEMORY, "check", *jobs.split(), *map(str, trees))
        peak = warm_up(Contender(f"memory{jobs}", inside, fine=(0, 1, 2), tells=r"^peak \d+")).removeprefix("peak ")
        yield Budget(f"memory of the parent{jobs}", int(peak) * RSS_UNIT / 1e6, 200, "MB")


def start_budgets(results: dict[str, Result]) -> Iterator[Budget]:
    """What is asked of a run over one file."""
    ratio = results[NO_TARGET].seconds / results[BARE].seconds
    yield Budget("check of a file without target, to a bare Python", ratio, 4, "x")
    yield Budget("fix of one file", results["torchmod fix, one file"].seconds, 0.35, "s")


def growth_budgets(results: dict[str, Result], starts: dict[str, Result]) -> Iterator[Budget]:
    """What is asked of a file of ten times the lines."""
    for command in ("check", "fix"):
        start, short, long = (
            runs[f"torchmod {command}, {name}"]
            for runs, name in ((starts, "one file"), (results, "N lines"), (results, "10 N lines"))
        )
        a_line, later = (
            (one.seconds - start.seconds) / (one.contender.lines - start.contender.lines) for one in (short, long)
        )
        note = f"without the start, a line costs {later / a_line:.2f}x as much"
        yield Budget(f"{command}, ten times the lines", long.seconds / short.seconds, 12, "x", note)


# the report


def table(results: dict[str, Result], references: Sequence[str]) -> Iterator[str]:
    """One line a contender."""
    wide = max(map(len, results))
    ratios = "".join(f"{'x ' + name.split(',', maxsplit=1)[0]:>17}" for name in references)
    yield f"{'':{wide}}{'median s':>10}{'min':>8}{'max':>8}{'cpu s':>8}{'MB':>6}{'kLOC/s':>9}{ratios}"
    for name, one in results.items():
        times = [sample.seconds for sample in one.samples]
        cpu = median(sample.processor for sample in one.samples)
        memory = max(sample.memory for sample in one.samples) / 1e6
        rate = f"{one.rate / 1000:.1f}" if one.contender.lines else ""
        line = f"{name:{wide}}{one.seconds:10.3f}{min(times):8.3f}{max(times):8.3f}{cpu:8.2f}{memory:6.0f}{rate:>9}"
        line += "".join(f"{cost(one, results[reference]):17.2f}" for reference in references)
        yield f"{line}  {one.told}".rstrip()


def cost(one: Result, reference: Result) -> float:
    """How many times as long as the reference a contender takes: for a line of code, or at all."""
    return reference.rate / one.rate if reference.contender.lines else one.seconds / reference.seconds


def budget_table(budgets: Sequence[Budget]) -> Iterator[str]:
    """One line a budget."""
    wide = max(len(budget.name) for budget in budgets)
    for name, measured, limit, unit, note, least in budgets:
        kept = measured >= limit if least else measured <= limit
        asked = f"{'at least' if least else 'at most'} {limit:g} {unit}"
        yield f"{name:{wide}}{measured:10.2f} {unit:2}  {asked:16} {'ok' if kept else 'MISSED':6}  {note}".rstrip()


def section(title: str, lines: Iterable[str]) -> None:
    """Print a part of the report, with how busy the machine was: on a busy one the numbers tell little."""
    text = "\n".join(lines)
    say("")
    print(f"\n{title} (load {os.getloadavg()[0]:.1f})\n\n{text}", flush=True)


def machine() -> str:
    """What the numbers are measured on."""
    return f"Python {platform.python_version()}, {platform.platform()}, {os.cpu_count()} processors"


# the command line


def options() -> argparse.Namespace:
    """What the user asks for."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    add = parser.add_argument
    add("trees", nargs="*", type=Path, metavar="TREE", help="folders of Python code (default: one is made up)")
    add("--venvs", type=Path, default=cache / "torchmod-bench", help="where the tools are kept (default: %(default)s)")
    add("--torchmod", metavar="CMD", help="an installed torchmod (default: this checkout is installed)")
    add("--rounds", type=positive, default=5, help="how often each command is timed (default: %(default)s)")
    add("--starts", type=positive, default=20, help="how often each start is timed (default: %(default)s)")
    add("--lines", type=positive, default=2000, help="N, for the cost of longer files (default: %(default)s)")
    add("--torchfix-files", type=int, default=200, help="the sample for TorchFix; 0: none (default: %(default)s)")
    return parser.parse_args()


def positive(text: str) -> int:
    """A number that makes sense as a count."""
    if int(text) < 1:
        raise ValueError
    return int(text)


def measure(given: argparse.Namespace, scratch: Path) -> None:
    """Install, measure, and print."""
    trees = [tree.resolve() for tree in given.trees] or [write_tree(scratch / "tree")]
    missing = [str(tree) for tree in trees if not tree.exists()]
    if missing:
        raise CouldNotRun(f"there is no {' and no '.join(missing)}")
    files = python_files(trees)
    if not files:
        raise CouldNotRun(f"there are no Python files under {' '.join(map(str, trees))}")
    sample = sample_of(files, given.torchfix_files)
    venvs = given.venvs.expanduser().resolve()
    peers = install_peers(venvs)
    torchmod = command_of(given.torchmod) if given.torchmod else (install_torchmod(venvs),)
    os.chdir(scratch)  # no configuration of the place we were started from
    commands = {"torchmod": torchmod, **{name: (path,) for name, path in peers.items()}}
    versions = [f"{name} {must([*command, '--version']).split()[-1]}" for name, command in commands.items()]
    say("")
    print(f"{machine()}\n{', '.join(versions)}", flush=True)

    tree = race(list(tree_contenders(torchmod, peers, trees, sample)), given.rounds)
    title = f"{' '.join(map(str, given.trees)) or 'A made-up tree'}: {len(files):,} files, {lines_of(files):,} lines"
    section(f"{title}; the sample: {len(sample):,} files, {lines_of(sample):,} lines", table(tree, (AST_GREP, RUFF)))
    starts = race(start_contenders(torchmod, scratch), given.starts)
    section("One file", table(starts, (BARE,)))
    growth = race(growth_contenders(torchmod, scratch, given.lines), given.rounds)
    section(f"One long file, N = {given.lines:,}", table(growth, ()))
    budgets = (*tree_budgets(tree), *start_budgets(starts), *growth_budgets(growth, starts))
    section("Budgets", budget_table([*budgets, *memory_budgets(torchmod, trees)]))


def main() -> int:
    """Run the benchmark; gives the exit status."""
    given = options()
    try:
        with tempfile.TemporaryDirectory(prefix="torchmod-bench-") as scratch:
            measure(given, Path(scratch).resolve())
    except (CouldNotRun, OSError) as error:
        say("")
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
