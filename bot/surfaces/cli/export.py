"""``gpuwhy export``."""

from __future__ import annotations

from pathlib import Path

import click

from bot.answer import Answer
from bot.surfaces.cli import options
from bot.surfaces.cli.group import NamingGroup
from bot.surfaces.cli.output import show, write

_out = click.option(
    "--out",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write it there, and say what was left out.",
)


@click.group("export", cls=NamingGroup)
def command() -> None:
    """Rules for Prometheus, a Grafana dashboard, an Alertmanager configuration.

    \b
    gpuwhy export prometheus > rules.yaml
    gpuwhy export grafana > dashboard.json
    gpuwhy export alertmanager > alertmanager.yaml
    """  # noqa: D301 - \b is click's mark for text that is not to be wrapped


@command.command("prometheus")
@click.option(
    "--runbook-base",
    default="",
    metavar="URL",
    help="Where the reference pages are served, for the links of alerts.",
)
@_out
@options.common
def prometheus(runbook_base: str, file: Path | None, common: options.Common) -> int:
    """Print recording and alert rules."""
    return _export("prometheus", common, file, runbook_base)


@command.command("grafana")
@_out
@options.common
def grafana(file: Path | None, common: options.Common) -> int:
    """Print a dashboard, built on the recorded names."""
    return _export("grafana", common, file)


@command.command("alertmanager")
@_out
@options.common
def alertmanager(file: Path | None, common: options.Common) -> int:
    """Print receivers, routes and inhibition for the alerts."""
    return _export("alertmanager", common, file)


def _export(what: str, common: options.Common, file: Path | None, runbooks: str = "") -> int:
    answer = _made(what, common, runbooks)
    if file is not None:
        from bot.commands import export  # noqa: PLC0415 - so that --help starts fast

        answer = export.save(answer, file)
    elif not common.as_json and not answer.errors:
        # Exactly the text: it goes into a file or to the program that it is for.
        write(str(answer.data["text"]))
        return 0
    return show(answer, as_json=common.as_json, color=common.color)


def _made(what: str, common: options.Common, runbooks: str) -> Answer:
    if common.server:
        from bot.surfaces.cli import remote  # noqa: PLC0415

        return remote.ask(common, "export", {"format": what, "runbooks": runbooks or None})
    from bot.commands import export  # noqa: PLC0415 - so that --help starts fast
    from bot.surfaces.cli.inputs import load  # noqa: PLC0415

    return export.run(what, catalogue=load(common), runbooks=runbooks)
