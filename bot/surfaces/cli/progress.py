"""A progress bar on stderr for what takes longer than a second."""

from __future__ import annotations

import sys
from threading import Lock, Timer
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

_DELAY_S = 1.0


class Progress:
    """Shows a bar if the work inside ``with`` is not over within a second and stderr is a terminal.

    Call it with (done, total) in any unit; until then, and with an unknown total, the bar pulses.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = Lock()
        self._over = False
        self._state: tuple[int, int | None] = (0, None)
        self._bar: tuple[Bar, TaskID] | None = None
        self._timer = Timer(_DELAY_S, self._start)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        del kind, error, trace
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._bar:
                self._bar[0].stop()

    def __call__(self, done: int, total: int | None = None) -> None:
        """Say how far the work is."""
        self._state = (done, total)
        if self._bar:
            bar, task = self._bar
            bar.update(task, completed=done, total=total)

    def _start(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - only slow work pays for it
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
        from rich.progress import Progress as RichProgress  # noqa: PLC0415

        with self._lock:
            if self._over:
                return
            bar = RichProgress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            done, total = self._state
            task = bar.add_task(self._what, completed=done, total=total)
            bar.start()
            self._bar = (bar, task)
