"""``gpuwhy nccl``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from bot.answer import Level
from bot.surfaces.cli import options
from bot.surfaces.cli.group import NamingGroup
from bot.surfaces.cli.output import show, warn
from engine.errors import UsageError

_CHUNK = 1 << 20


@click.group("nccl", cls=NamingGroup)
def command() -> None:
    """Durations of NCCL's collectives, from NCCL Inspector or a profiler plugin.

    \b
    gpuwhy nccl stats nccl-inspector-4711/
    gpuwhy nccl export nccl-inspector-4711/ --listen :9468
    """  # noqa: D301 - \b is click's mark for text that is not to be wrapped


@command.command("stats")
@click.argument("paths", nargs=-1, required=True, metavar="FILE…|DIR")
@options.fail_on
@options.common
def stats(paths: tuple[str, ...], fail_on: Level | None, common: options.Common) -> int:
    """Say how long collectives took, by size, and which ranks come late.

    Give the files of all ranks: only then can they be compared. With - standard input is read.
    """
    from bot.commands.nccl import run  # noqa: PLC0415 - so that --help starts fast
    from bot.surfaces.cli.progress import Progress  # noqa: PLC0415
    from engine.nccl.files import Given, given  # noqa: PLC0415

    _here_only(common)
    inputs = []
    for path in paths:
        inputs += [Given("stdin", _stdin())] if path == "-" else given([Path(path)])
    with Progress("reading") as progress:
        answer = run(inputs, on_progress=progress)
    return show(answer, as_json=common.as_json, color=common.color, fail_on=fail_on)


@command.command("export")
@click.argument("paths", nargs=-1, required=True, metavar="DIR…", type=click.Path(path_type=Path))
@click.option(
    "--listen",
    default="127.0.0.1:9468",
    show_default=True,
    metavar="ADDRESS:PORT",
    help="Where Prometheus scrapes /metrics; :9468 is all addresses, port 0 a free one.",
)
def export(paths: tuple[Path, ...], listen: str) -> int:
    """Serve durations to Prometheus, following the files as they grow, until told to stop.

    What the files hold already is read first, so that counters do not jump after a restart.
    """
    from bot.ncclexport import export as served  # noqa: PLC0415 - aiohttp
    from engine.nccl.beginnings import doubts  # noqa: PLC0415

    warn(doubt for path in paths for doubt in doubts(path))
    return served(paths, listen, lambda said: click.echo(said, err=True))


def _stdin() -> Iterator[bytes]:
    while chunk := sys.stdin.buffer.read(_CHUNK):
        yield chunk


def _here_only(common: options.Common) -> None:
    """Refuse to go past a server, which has not these files.

    Raises:
        UsageError: ``--server`` was given.
    """
    if common.server:
        raise UsageError(
            "nccl stats reads files of this machine, not through a server",
            hint="leave out --server; gpuwhy read FILE --server URL sends a file",
        )
