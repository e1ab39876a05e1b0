"""A progress bar on a terminal, for work that takes long enough to wonder."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bar:
    """Shows nothing for the first ``delay`` seconds; rich is imported only then."""

    def __init__(self, delay: float) -> None:
        self._start = time.monotonic() + delay
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def show(self, done: int, total: int) -> None:
        """Tell how many of how many files are done."""
        if self._progress is None:
            if time.monotonic() < self._start:
                return
            self._open(total)
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, total=total)

    def stop(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()

    def _open(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("torchmod"), BarColumn(), MofNCompleteColumn(), TextColumn("files"), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task("", total=total)
        self._progress.start()
