"""Options of the test run."""

import pytest

SUMMARY = pytest.StashKey[str]()
"""One line on what the golden pairs were run on."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write what comes out as the expectation; review it with git diff"
    )
    parser.addoption(
        "--device",
        choices=("auto", "cuda", "simulated", "cpu"),
        default="auto",
        help="where the golden pairs run (default: CUDA where there is a GPU, else the simulated device)",
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if SUMMARY in config.stash:
        terminalreporter.write_line(config.stash[SUMMARY])
