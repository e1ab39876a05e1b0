"""The command line: words to settings, a run, a report, an exit status. No logic of its own.

Heavy modules are imported where they are used: a file that holds nothing for us must be passed in the time that a
Python process takes to start.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from torchmod import __version__
from torchmod.basics import Applicability, Status, TorchmodError

CLEAN, FOUND, WRONG, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143
PROGRESS_AFTER = 1.0
"""Seconds until a terminal is shown a progress bar."""


class _Terminated(KeyboardInterrupt):
    """We were asked to end (SIGTERM): as with Ctrl-C, after tidying up."""


def main(arguments: Sequence[str]) -> int:
    """Run one command; gives the exit status."""
    if list(arguments[:1]) == ["verify"]:  # it has a command line of its own, for machines with nothing but torch
        from torchmod.verify.__main__ import main as verify

        return verify(arguments[1:])
    try:
        with _tidy_end():
            options = _parser().parse_args(list(arguments))
            status: int = options.run(options)
            sys.stdout.flush()
    except TorchmodError as error:
        print(f"torchmod: {error}", file=sys.stderr)
        return WRONG
    except KeyboardInterrupt as interrupt:
        print("torchmod: interrupted; every file is either as it was or completely written", file=sys.stderr)
        return TERMINATED if isinstance(interrupt, _Terminated) else INTERRUPTED
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # else the reader of our output went away
            print(f"torchmod: {error.filename or 'standard output'}: {error.strerror}", file=sys.stderr)
        return WRONG
    return status


@contextlib.contextmanager
def _tidy_end() -> Iterator[None]:
    def end(number: int, frame: object) -> NoReturn:
        raise _Terminated

    try:
        before = signal.signal(signal.SIGTERM, end)
    except ValueError:  # not in the main thread: signals are somebody else's
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Parser(argparse.ArgumentParser):
    """Names the nearest right word where one was misspelt."""

    def error(self, message: str) -> NoReturn:
        from torchmod.words import nearest

        hints = []
        if message.startswith("unrecognized arguments"):
            known = self._takers()
            for word in (word.split("=")[0] for word in message.split() if word.startswith("--")):
                takers = " and ".join(f"`{taker}`" for taker in known.get(word, ()))
                hints.append(f"; it belongs to {takers}" if takers else nearest(word, known))
        elif "invalid choice: " in message:
            given, _, right = message.partition("invalid choice: ")[2].partition("(choose from")
            hints.append(nearest(given.strip(" '\""), re.findall(r"[\w-]+", right)))
        self.exit(WRONG, f"torchmod: {message}{''.join(hints)}\ntry `torchmod --help`\n")

    def _takers(self) -> dict[str, list[str]]:
        """The options of every command, with the commands that take them."""
        found: dict[str, list[str]] = {word: [] for word in self._option_string_actions}
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for command, parser in action.choices.items():
                    for word in parser._option_string_actions:
                        found.setdefault(word, []).append(command)
        return found


_COMMANDS = {
    "check": "list what could be rewritten, and what was left alone",
    "diff": "show what `fix` would change, as a unified diff; write nothing",
    "fix": "rewrite the files",
    "verify": "run code before and after a rewrite, and say whether it does the same",
    "list": "list the transforms",
    "explain": "explain one transform, with an example",
    "new": "for authors: start a new transform",
    "docs": "for authors: check or write what is generated from the transforms",
}


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="torchmod",
        allow_abbrev=False,
        description="Rewrites old PyTorch code so that it runs, correctly, on today's PyTorch.",
        epilog="exit status: 0 nothing found, 1 findings or changes, 2 something went wrong, 130 interrupted",
    )
    parser.add_argument("--version", action="version", version=f"torchmod {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)
    for name in ("check", "diff", "fix"):
        one = commands.add_parser(name, help=_COMMANDS[name], description=_COMMANDS[name], allow_abbrev=False)
        one.set_defaults(run=_run, command=name)
        _add_run_options(one, name)
    commands.add_parser("verify", help=_COMMANDS["verify"], add_help=False)
    one = commands.add_parser("list", help=_COMMANDS["list"], allow_abbrev=False)
    one.set_defaults(run=_list)
    _add_configuration(one)
    one = commands.add_parser("explain", help=_COMMANDS["explain"], allow_abbrev=False)
    one.add_argument("name", metavar="NAME")
    one.set_defaults(run=_explain)
    _add_configuration(one)
    one = commands.add_parser("new", help=_COMMANDS["new"], allow_abbrev=False)
    one.add_argument("name", metavar="NAME")
    one.set_defaults(run=_new)
    one = commands.add_parser("docs", help=_COMMANDS["docs"], allow_abbrev=False)
    group = one.add_mutually_exclusive_group(required=True)
    group.add_argument("--check", action="store_true", help="say what is out of date")
    group.add_argument("--write", action="store_true", help="bring it up to date")
    one.set_defaults(run=_docs)
    return parser


def _add_configuration(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", help="read the configuration from FILE")
    parser.add_argument("--isolated", action="store_true", help="read no configuration")


def _add_run_options(parser: argparse.ArgumentParser, command: str) -> None:
    add = parser.add_argument
    add("paths", nargs="*", default=["."], metavar="PATH", help="files and folders (default: .); - is standard input")
    add("--select", type=_words, metavar="NAMES", help="only these transforms (names or tags, with commas)")
    add("--extend-select", type=_words, metavar="NAMES", help="these too")
    add("--ignore", type=_words, metavar="NAMES", help="not these")
    add("--unsafe", action="store_true", default=None, help="also make fixes that ask for review")
    add("--target", metavar="VERSION", help="the oldest torch the result must run on (default: the newest known)")
    add("--written-for", metavar="VERSION", help="the torch the code was written for")
    add("--format", choices=("text", "json", "github"), default="text", help="how to tell (default: text)")
    add("--output", metavar="FILE", help="write the report to FILE")
    add("--jobs", type=int, metavar="N", help="processes (default: one for each processor)")
    _add_configuration(parser)
    add("--exclude", action="append", dest="extend_exclude", metavar="GLOB", help="leave these out too")
    add("--force-exclude", action="store_true", default=None, help="leave excluded files out even if named")
    add("--show-files", action="store_true", help="list the files that would be looked at, and stop")
    add("--stdin-filename", metavar="FILE", default="stdin.py", help="the name that standard input is read under")
    add("--strict", action="store_true", help="let notes count as findings in the exit status")
    if command == "fix":
        add("--exit-non-zero-on-fix", action="store_true", help="exit 1 when something was changed")
    add("-q", "--quiet", action="store_true", help="no summary")
    add("-v", "--verbose", action="store_true", help="evidence, notes, and what was left out")


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


_OVERRIDES = ("select", "extend_select", "ignore", "unsafe", "target", "written_for", "jobs", "force_exclude")


def _settings(options: argparse.Namespace) -> Any:
    from torchmod.settings import load

    given = {name: getattr(options, name, None) for name in _OVERRIDES}
    overrides = {name: value for name, value in given.items() if value is not None}
    first = next(iter(getattr(options, "paths", [])), ".")
    start = os.path.dirname(os.path.abspath(first)) if os.path.isfile(first) else first
    start = start if os.path.isdir(start) else "."
    extra = getattr(options, "extend_exclude", None) or ()
    return load(start, config=options.config, isolated=options.isolated, overrides=overrides, exclude=extra)


def _run(options: argparse.Namespace) -> int:
    from torchmod.runner import Task, run_paths

    settings = _settings(options)
    if options.show_files:
        return _show_files(options, settings)
    task = Task(apply=options.command != "check", build=options.format == "json")
    if options.paths == ["-"]:
        return _run_stdin(options, settings, task)
    if "-" in options.paths:
        raise TorchmodError("`-` (standard input) goes with no other path")
    progress, done = _progress(options)
    try:
        run = run_paths(options.paths, settings, task, progress)
    finally:
        done()
    if options.command == "fix" and run.changed:
        from torchmod.writing import write_all

        run.outcomes = write_all(run.outcomes)
    if not run.checked and not run.outcomes and not options.quiet:
        print(f"torchmod: no Python files under {' '.join(options.paths)}", file=sys.stderr)
    _tell(run, options)
    return _status(run, options)


def _run_stdin(options: argparse.Namespace, settings: Any, task: Any) -> int:
    """Standard input: ``fix`` writes the result to standard output, with the exit status of ``diff``."""
    from torchmod.runner import run_text

    if options.command == "fix" and options.format != "text" and not options.output:
        raise TorchmodError("standard output is for the result: name a file for the report, with --output")
    data = sys.stdin.buffer.read()
    run = run_text(options.stdin_filename, data, settings, task)
    if options.command != "fix":
        _tell(run, options)
        return _status(run, options)
    _put(run.outcomes[0].new or data)
    if options.output:
        _tell(run, options)
    else:
        from torchmod.report import text

        sys.stderr.write(text.problems(run, _view(options)))
    return WRONG if run.count(Status.FAILED, Status.UNREADABLE) else FOUND if run.changed else CLEAN


def _status(run: Any, options: argparse.Namespace) -> int:
    if run.count(Status.FAILED, Status.UNREADABLE):
        return WRONG
    if options.command == "diff":
        return FOUND if run.changed else CLEAN
    left = [f for o in run.outcomes for f in o.findings if not f.fixed]
    if (options.strict and left) or any(f.applicability is not Applicability.NOTE for f in left):
        return FOUND
    return FOUND if getattr(options, "exit_non_zero_on_fix", False) and run.changed else CLEAN


def _view(options: argparse.Namespace) -> Any:
    from torchmod.report.view import View, wants_colour

    colour = not options.output and wants_colour(sys.stdout)
    return View(options.command, options.format, options.verbose, options.quiet, colour)


def _tell(run: Any, options: argparse.Namespace) -> None:
    """The report to standard output or a file; problems, and a diff's summary, to standard error."""
    from torchmod.report import text

    view = _view(options)
    body = b""
    if view.format == "json":
        from torchmod.report.machine import as_json

        body = as_json(run).encode()
    elif view.format == "github":
        from torchmod.report.machine import as_github

        body = as_github(run, view).encode("utf-8", "surrogateescape")
    elif view.command == "diff":
        from torchmod.report.diff import diff

        body = diff(run, colour=view.colour)
    else:
        body = text.findings(run, view).encode("utf-8", "surrogateescape")
    summary = "" if view.quiet else text.summary(run, view)
    if view.format == "text":
        if view.command == "diff":
            sys.stderr.write(text.problems(run, view) + summary)
        else:
            sys.stderr.write(text.problems(run, view))
            body += summary.encode("utf-8", "surrogateescape")
    elif view.format == "github":
        sys.stderr.write(text.problems(run, view))
    if not options.output:
        _put(body)
        return
    from torchmod.writing import write_file

    try:
        write_file(options.output, body)
    except OSError as error:
        raise TorchmodError(f"{options.output} cannot be written: {error.strerror}") from None


def _put(data: bytes) -> None:
    """Write all of something to standard output, which writes only a part at a time where it is unbuffered."""
    while data:
        data = data[sys.stdout.buffer.write(data) :]


def _show_files(options: argparse.Namespace, settings: Any) -> int:
    from torchmod.discover import discover
    from torchmod.selection import rows

    documents = sorted({pattern for row in rows(settings).values() for pattern in row.documents})
    status = CLEAN
    for found in discover(options.paths, settings, documents):
        if not found.reason:
            _put(os.fsencode(found.path) + b"\n")
        elif options.verbose or found.unreadable:
            print(f"skipped {found.path}: {found.reason}", file=sys.stderr)
        status = WRONG if found.unreadable else status
    return status


def _progress(options: argparse.Namespace) -> tuple[Any, Any]:
    """What shows progress on a terminal once the work takes long, and what ends it."""
    if options.quiet or not sys.stderr.isatty():
        return (lambda done, total: None), (lambda: None)
    from torchmod.report.progress import Bar

    bar = Bar(PROGRESS_AFTER)
    return bar.show, bar.stop


def _list(options: argparse.Namespace) -> int:
    from torchmod.docs import table
    from torchmod.registry import discover

    print(table(discover(_settings(options).plugins)), end="")
    return CLEAN


def _explain(options: argparse.Namespace) -> int:
    from torchmod.docs import explanation
    from torchmod.registry import discover

    print(explanation(options.name, discover(_settings(options).plugins)), end="")
    return CLEAN


def _new(options: argparse.Namespace) -> int:
    from torchmod.scaffold import new

    for path in new(options.name):
        print(f"wrote {path}")
    return CLEAN


def _docs(options: argparse.Namespace) -> int:
    from torchmod.docs import update

    stale = update(write=options.write)
    for path in stale:
        print(f"{'wrote' if options.write else 'out of date:'} {path}")
    return CLEAN if options.write or not stale else WRONG
