"""Commands on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.capture.errors import UnreachableError
from engine.capture.executors import files, process
from engine.capture.ports import Completed


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """Runs commands on this machine; ``host`` is what the target calls it."""

    host: str
    route: str = "local"
    through: tuple[str, ...] = ()

    async def run(
        self, argv: tuple[str, ...], *, timeout_s: float, output: int | None = None
    ) -> Completed:
        """Run a command; see `engine.capture.ports.Executor`."""
        try:
            return await process.run(argv, timeout_s=timeout_s, output=output)
        except TimeoutError:
            raise too_slow(argv, self.host, timeout_s) from None

    async def fetch(
        self, argv: tuple[str, ...], destination: Path, *, max_bytes: int, timeout_s: float
    ) -> int:
        """Keep a command's output as a file; see `engine.capture.ports.Executor`."""
        return await files.receive(
            lambda output: self.run(argv, timeout_s=timeout_s, output=output),
            destination,
            host=self.host,
            max_bytes=max_bytes,
        )


def too_slow(argv: tuple[str, ...], host: str, timeout_s: float) -> UnreachableError:
    """Return the error for a command that did not end in time."""
    what = " ".join(argv[:2])
    said = f"{what} on {host} did not end within {timeout_s:g} s"
    return UnreachableError(said, hint=f"look at {host}: is it overloaded?", code="target_timeout")
