"""``gpuwhy why``."""

from __future__ import annotations

import asyncio

import click

from bot.answer import Answer, Level
from bot.surfaces.cli import options
from bot.surfaces.cli.output import show
from engine.errors import UsageError
from engine.topology import parse_target


@click.command("why")
@click.argument("target", nargs=-1, required=True)
@options.source
@options.logs
@options.period
@options.everything
@options.fail_on
@options.common
def command(
    *,
    target: tuple[str, ...],
    source: options.SourceOptions,
    logs: options.LogOptions,
    at: float | None,
    window: float | None,
    everything: bool,
    fail_on: Level | None,
    common: options.Common,
) -> int:
    """Say why TARGET is slow: the root cause, the readings that prove it, what to do next.

    TARGET is HOST:GPU (node-3:5), a GPU UUID or its start, HOST, pod/NAMESPACE/NAME, job/ID,
    job/ID/rank/N, svc/MODEL, svc/MODEL#INSTANCE, fs/MOUNT, rack/NAME or fleet; "gpu 5 on node-3"
    works too.
    """
    asked = _target(target)
    if common.server:
        from bot.surfaces.cli.remote import no_more  # noqa: PLC0415 - so that --help starts fast

        no_more(everything)
        answer = _remote(asked, source, logs, at, window, common)
    else:
        answer = asyncio.run(_ask(asked, source, logs, at, window, everything, common))
    return show(answer, as_json=common.as_json, color=common.color, fail_on=fail_on)


def _target(words: tuple[str, ...]) -> str:
    """Return the target that some words name: as it stands, or out of a question.

    Names of jobs may hold blanks, but words that the shell did not keep together are a question
    first: "job/4711 since 03:12".
    """
    said = " ".join(words)
    try:
        target = parse_target(said)
    except UsageError:
        target = None
    if target is None or (len(words) > 1 and target.job):
        from bot.router import understand  # noqa: PLC0415 - only for questions in words

        request = understand(said)
        if request is not None and request.command == "why":
            return str(request.args["target"])
    return said


def _remote(
    target: str,
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
        return ask(common, "why", {"target": target, "at": at, "window": window})


async def _ask(
    target: str,
    source: options.SourceOptions,
    logs: options.LogOptions,
    at: float | None,
    window: float | None,
    everything: bool,
    common: options.Common,
) -> Answer:
    from bot.commands import why  # noqa: PLC0415 - so that --help starts fast
    from bot.surfaces.cli.inputs import prepare  # noqa: PLC0415
    from bot.surfaces.cli.progress import Progress  # noqa: PLC0415

    with Progress("reading") as progress:
        setup = prepare(common, source, progress, logs)
        try:
            return await why.run(
                target,
                engine=setup.engine,
                source=setup.source,
                at=at,
                window_s=window or setup.settings.window,
                logs=setup.logs,
                everything=everything,
            )
        finally:
            await setup.aclose()
