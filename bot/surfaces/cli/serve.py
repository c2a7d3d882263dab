"""``gpuwhy serve``."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING

import click

from bot.surfaces.cli import options
from bot.surfaces.cli.output import show
from engine.errors import UsageError

if TYPE_CHECKING:
    from bot.backend import OpenSource
    from bot.settings import Settings
    from engine.sources.port import Source


@click.command("serve")
@click.option("--check", is_flag=True, help="Check configuration and dependencies, then end.")
@options.source
@options.common
def command(*, check: bool, source: options.SourceOptions, common: options.Common) -> int:
    """Run the Slack bot and the HTTP API.

    Everything is set in gpuwhy.yaml or by variables; see docs/configuration.md. With --check every
    part is tried once: exit status 0 if all is well, 2 if the configuration is wrong, 3 if
    something does not answer.
    """
    from bot import config  # noqa: PLC0415 - so that --help starts fast

    settings = config.load(common.config, os.environ)
    if common.overlay:
        folders = (*settings.overlays, *common.overlay)
        settings = settings.model_copy(update={"overlays": folders})
    readings = _source(source, settings)
    watched = _watched(settings)
    if check:
        from bot.preflight import check as checked  # noqa: PLC0415

        answer = asyncio.run(checked(settings, readings, watched))
        return show(answer, as_json=common.as_json, color=common.color)
    from bot.serve import serve  # noqa: PLC0415
    from bot.slackconnection import connect  # noqa: PLC0415

    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.INFO)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    return serve(
        settings, readings, connect, lambda said: click.echo(said, err=True), watched=watched
    )


def _watched(settings: Settings) -> OpenSource | None:
    """Return what makes the source of the watch, if it has one of its own."""
    url = settings.watch.prometheus
    return None if url is None else _source(options.SourceOptions(url, (), ()), settings)


def _source(chosen: options.SourceOptions, settings: Settings) -> OpenSource | None:
    """Return what makes a source; None if none is named, which a server can do without."""
    from bot.surfaces.cli.inputs import open_source  # noqa: PLC0415

    def opened() -> Source:
        return open_source(chosen, settings, lambda _done, _total: None)

    try:
        opened()
    except UsageError as error:
        if error.code == "no_source":
            return None
        raise
    return opened
