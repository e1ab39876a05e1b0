"""The command line of the verification: ``python -m torchmod.verify golden`` and ``battery``.

Exit status: 0 equivalent, 1 different, 2 could not run, 3 inconclusive.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

EQUIVALENT, DIFFERENT, COULD_NOT_RUN, INCONCLUSIVE, INTERRUPTED = 0, 1, 2, 3, 130
MOST_JOBS, MOST_SECONDS = 256, 86_400


def main(arguments: Sequence[str]) -> int:
    """Run one command; gives the exit status. Whatever goes wrong is told on one line."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        options = _parser().parse_args(list(arguments))
        if importlib.util.find_spec("torch") is None:
            return _refuse("it needs torch: pip install torch")
        from torchmod.verify.cases import VerifyError

        try:
            status: int = options.run(options)
        except VerifyError as error:
            return _refuse(str(error))
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("torchmod verify: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away
        _give_up_output()
        return COULD_NOT_RUN
    except Exception as error:
        if isinstance(error, OSError):
            _give_up_output()
        return _refuse(_unexpected(error))
    return status


def _give_up_output() -> None:
    """Let what is still to be written go nowhere: Python would try again at its end, and fail again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unexpected(error: Exception) -> str:
    """What happened, and where."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}, line {where.lineno})"


def _refuse(reason: str) -> int:
    from torchmod.verify.trace import printable

    with contextlib.suppress(OSError):  # nobody can be told
        print(f"torchmod verify: {printable(reason)}", file=sys.stderr)
    return COULD_NOT_RUN


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="torchmod verify",
        allow_abbrev=False,
        description="Runs code before and after a rewrite, and says whether it does the same.",
        epilog="exit status: 0 equivalent, 1 different, 2 could not run, 3 inconclusive",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    golden = commands.add_parser("golden", help="run the golden cases, and the wrong rewrites beside them")
    golden.set_defaults(run=_golden)
    add = golden.add_argument
    add("names", nargs="*", metavar="NAME", help="a transform, a case, or transform/case (default: all)")
    add("--golden", type=Path, default=Path("golden"), metavar="DIR", help="where the cases are (default: golden)")
    add("--jobs", type=_count, metavar="N", help="runs at a time (default: one for each processor)")
    add("--timeout", type=_seconds, default=20.0, metavar="SECONDS", help="for one run (default: 20)")
    add("-v", "--verbose", action="store_true", help="also what is as it should be")
    battery = commands.add_parser("battery", help="check what a CUDA device does, on a real or the simulated one")
    battery.set_defaults(run=_battery)
    for one in (golden, battery):
        one.add_argument(
            "--device",
            choices=("auto", "cuda", "simulated", "cpu") if one is golden else ("auto", "cuda", "simulated"),
            default="auto",
            help="where to run (default: CUDA where there is a GPU, else the simulated device)",
        )
        one.add_argument("--format", choices=("text", "json"), default="text", help="how to tell (default: text)")
    return parser


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_JOBS:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {MOST_JOBS}")


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) <= MOST_SECONDS:  # which nan is not
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0, of at most {MOST_SECONDS}")


def _golden(options: argparse.Namespace) -> int:
    from torchmod.verify import report
    from torchmod.verify.cases import read_cases
    from torchmod.verify.compare import Kind
    from torchmod.verify.confine import Limits
    from torchmod.verify.golden import run_cases
    from torchmod.verify.trace import Device

    _check_device(options.device)
    cases = read_cases(options.golden, options.names)
    results = run_cases(cases, Device(options.device), Limits(seconds=options.timeout), workers=options.jobs)
    as_json = options.format == "json"
    sys.stdout.write(report.as_json(results) if as_json else report.as_text(results, verbose=options.verbose))
    wrong_missed = any(not one.caught for result in results for one in result.wrong if result.kind is Kind.EQUIVALENT)
    if wrong_missed or any(result.kind in (Kind.DIFFERENT, Kind.STALE) for result in results):
        return DIFFERENT
    if any(result.case.problem for result in results):
        return COULD_NOT_RUN
    proved = all(result.passed for result in results) and any(result.kind is not None for result in results)
    return EQUIVALENT if proved else INCONCLUSIVE


def _check_device(device: str) -> None:
    """VerifyError when a real GPU is asked for and there is none."""
    from torchmod.verify.cases import VerifyError
    from torchmod.verify.simulated import real_cuda

    if device == "cuda" and not real_cuda():
        raise VerifyError("there is no CUDA device here; `--device simulated` runs on a simulated one")


def _battery(options: argparse.Namespace) -> int:
    import torch

    from torchmod.verify import report
    from torchmod.verify.battery import run_battery
    from torchmod.verify.simulated import real_cuda

    _check_device(options.device)
    results = run_battery(options.device)
    real = real_cuda() and options.device != "simulated"
    device = f"cuda ({torch.cuda.get_device_name(0)})" if real else "simulated"
    told = report.battery_json if options.format == "json" else report.battery_text
    sys.stdout.write(told(results, device))
    return EQUIVALENT if all(one.status != "failed" for one in results) else DIFFERENT


if __name__ == "__main__":
    # `python -m` puts the working directory first: a user's copy.py must never be imported
    if not sys.flags.safe_path and sys.path and os.path.abspath(sys.path[0]) == os.getcwd():
        del sys.path[0]
    sys.exit(main(sys.argv[1:]))
