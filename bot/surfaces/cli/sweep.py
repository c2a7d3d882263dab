"""``gpuwhy sweep``."""

from __future__ import annotations

import asyncio

import click

from bot.answer import Answer, Level
from bot.surfaces.cli import options
from bot.surfaces.cli.output import show


@click.command("sweep")
@click.option("--where", metavar="SELECTOR", help='Only these: Hostname=~"node-.*",cluster="a".')
@options.source
@options.logs
@options.period
@options.everything
@options.fail_on
@options.common
def command(
    *,
    where: str | None,
    source: options.SourceOptions,
    logs: options.LogOptions,
    at: float | None,
    window: float | None,
    everything: bool,
    fail_on: Level | None,
    common: options.Common,
) -> int:
    """Find everything that is sick, worst first, grouped by root cause."""
    if common.server:
        from bot.surfaces.cli.remote import no_more  # noqa: PLC0415 - so that --help starts fast

        no_more(everything)
        answer = _remote(where, source, logs, at, window, common)
    else:
        answer = asyncio.run(_ask(where, source, logs, at, window, everything, common))
    return show(answer, as_json=common.as_json, color=common.color, fail_on=fail_on)


def _remote(
    where: str | None,
    source: options.SourceOptions,
    logs: options.LogOptions,
    at: float | None,
    window: float | None,
    common: options.Common,
) -> Answer:
    from bot.surfaces.cli.progress import Progress  # noqa: PLC0415 - so that --help starts fast
    from bot.surfaces.cli.remote import ask, no_source  # noqa: PLC0415

    no_source(source, logs)
    with Progress("asking"):
        return ask(common, "sweep", {"where": where, "at": at, "window": window})


async def _ask(
    where: str | None,
    source: options.SourceOptions,
    logs: options.LogOptions,
    at: float | None,
    window: float | None,
    everything: bool,
    common: options.Common,
) -> Answer:
    from bot.commands import sweep  # noqa: PLC0415 - so that --help starts fast
    from bot.selector import parse_selector  # noqa: PLC0415
    from bot.surfaces.cli.inputs import prepare  # noqa: PLC0415
    from bot.surfaces.cli.progress import Progress  # noqa: PLC0415

    matchers = parse_selector(where or "")
    with Progress("looking at the fleet") as progress:
        setup = prepare(common, source, progress, logs)
        try:
            return await sweep.run(
                engine=setup.engine,
                source=setup.source,
                at=at,
                window_s=window or setup.settings.window,
                logs=setup.logs,
                everything=everything,
                where=matchers,
                source_option=source.as_typed(),
            )
        finally:
            await setup.aclose()
