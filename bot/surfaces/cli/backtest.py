"""``gpuwhy rules backtest``."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bot.surfaces.cli import options
from bot.surfaces.cli.output import show
from bot.times import parse_span
from engine.errors import UsageError

if TYPE_CHECKING:
    from bot.answer import Answer

_DEFAULT_SINCE = "7d"
_DEFAULT_STEP = "60s"


@click.command("backtest")
@click.argument("rules", nargs=-1, metavar="[RULE…]")
@options.source
@click.option(
    "--since",
    type=parse_span,
    default=_DEFAULT_SINCE,
    metavar="SPAN",
    show_default=True,
    help="How far back to begin.",
)
@click.option(
    "--until",
    type=options.moment,
    metavar="TIME",
    help="Where to end (default: now, or the newest sample of a file).",
)
@click.option(
    "--step",
    type=parse_span,
    default=_DEFAULT_STEP,
    metavar="SPAN",
    show_default=True,
    help="Time between two moments.",
)
@click.option(
    "--compare",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Compare with the rules that this overlay, a folder or one file, makes.",
)
@click.option(
    "--where", metavar="LABELS", help='Only series with these labels: Hostname=~"node-.*".'
)
@options.common
def command(
    *,
    rules: tuple[str, ...],
    source: options.SourceOptions,
    since: float,
    until: float | None,
    step: float,
    compare: Path | None,
    where: str | None,
    common: options.Common,
) -> int:
    """Replay rules over the past: when each RULE would have fired, on what and for how long.

    Without RULE, all causes; with --compare, the rules that differ.
    """
    if common.server:
        hint = "leave --server out, and name the metrics server with --prometheus"
        raise UsageError("rules backtest runs where it is started", hint=hint)
    answer = asyncio.run(_run(rules, source, since, until, step, compare, where, common))
    return show(answer, as_json=common.as_json, color=common.color)


async def _run(
    rules: tuple[str, ...],
    source: options.SourceOptions,
    since: float,
    until: float | None,
    step: float,
    compare: Path | None,
    where: str | None,
    common: options.Common,
) -> Answer:
    from bot import config  # noqa: PLC0415 - so that --help starts fast
    from bot.commands import backtest  # noqa: PLC0415
    from bot.selector import parse_selector  # noqa: PLC0415
    from bot.surfaces.cli.inputs import open_source  # noqa: PLC0415
    from bot.surfaces.cli.progress import Progress  # noqa: PLC0415
    from engine.catalogue import load_catalogue  # noqa: PLC0415

    matchers = parse_selector(where or "")
    settings = config.load(common.config, os.environ)
    folders = (*settings.overlays, *common.overlay)
    catalogue = load_catalogue(folders, strict=False)
    # What is to be compared is there to be judged: a part of it that is broken is an error.
    other = load_catalogue((*folders, compare)) if compare else None
    with Progress("replaying") as progress:
        opened = open_source(source, settings, _quiet)
        try:
            return await backtest.run(
                rules,
                catalogue=catalogue,
                source=opened,
                since_s=since,
                until=until,
                step_s=step,
                other=other,
                where=matchers,
                on_progress=progress,
            )
        finally:
            await opened.aclose()


def _quiet(done: int, total: int) -> None:
    """Reading a piece is a small part of the whole: the bar counts moments."""
