"""``gpuwhy read``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from bot.answer import Level
from bot.surfaces.cli import options
from bot.surfaces.cli.output import show

_CHUNK = 1 << 20


@click.command("read")
@click.argument("files", nargs=-1, metavar="[FILE…|-]")
@options.everything
@options.fail_on
@options.common
def command(
    files: tuple[str, ...], everything: bool, fail_on: Level | None, common: options.Common
) -> int:
    """Say what logs, tool output, metrics and traces show; kinds of text may be mixed.

    Without FILE, or with -, standard input is read.
    """
    from bot.commands.read import Input, judged_by, run  # noqa: PLC0415 - so that --help starts fast
    from bot.surfaces.cli.inputs import make_engine, overlays  # noqa: PLC0415
    from bot.surfaces.cli.progress import Progress  # noqa: PLC0415

    named = files or ("-",)
    if "-" in named and sys.stdin.isatty():
        click.echo("reading from the terminal; end with Ctrl-D", err=True)
    if common.server:
        from bot.surfaces.cli import remote  # noqa: PLC0415 - not paid for without --server

        remote.no_more(everything)
        with Progress("asking"):
            answer = remote.read(common, named, _stdin())
        return show(answer, as_json=common.as_json, color=common.color, fail_on=fail_on)
    inputs = [Input("stdin", _stdin()) if n == "-" else Input(n, Path(n)) for n in named]
    with Progress("reading") as progress:
        engine = make_engine(overlays(common))
        answer = run(
            inputs,
            catalogue=engine.catalogue,
            diagnose=judged_by(engine),
            on_progress=progress,
            everything=everything,
        )
    return show(answer, as_json=common.as_json, color=common.color, fail_on=fail_on)


def _stdin() -> Iterator[bytes]:
    while chunk := sys.stdin.buffer.read(_CHUNK):
        yield chunk
