"""``gpuwhy rules``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from bot.answer import Answer, Level
from bot.surfaces.cli import backtest, options
from bot.surfaces.cli.group import NamingGroup
from bot.surfaces.cli.output import show, warn
from engine.errors import UsageError

if TYPE_CHECKING:
    from engine.catalogue.types import Catalogue


def _catalogue(common: options.Common) -> Catalogue:
    from bot.surfaces.cli.inputs import load  # noqa: PLC0415 - so that --help starts fast

    return load(common)


def _remote(common: options.Common, action: str, *names: str) -> Answer | None:
    """Have a server answer, if one is named."""
    if not common.server:
        return None
    from bot.surfaces.cli.remote import ask  # noqa: PLC0415

    args = {"action": action, "names": list(names)} if names else {"action": action}
    return ask(common, "rules", args)


def _rule_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    del ctx, param
    from engine.catalogue import load_catalogue  # noqa: PLC0415

    catalogue = load_catalogue()
    titles = {rule.id: rule.title for rule in catalogue.causes.values()}
    titles |= {rule.id: rule.title for rule in catalogue.symptoms.values()}
    found = sorted(name for name in titles if name.startswith(incomplete))
    return [CompletionItem(name, help=titles[name]) for name in found]


@click.group("rules", cls=NamingGroup)
def command() -> None:
    """List, show, test and lint the rules."""


@command.command("list")
@options.common
def list_(common: options.Common) -> int:
    """List every rule with its version, status and title."""
    from bot.commands import rules  # noqa: PLC0415

    answer = _remote(common, "list") or rules.list_rules(_catalogue(common))
    return show(answer, as_json=common.as_json, color=common.color)


@command.command("show")
@click.argument("rule", shell_complete=_rule_names)
@options.common
def show_(rule: str, common: options.Common) -> int:
    """Show RULE in full: patterns, thresholds and where they come from, tests, references."""
    from bot.commands import rules  # noqa: PLC0415

    answer = _remote(common, "show", rule) or rules.show(rule, _catalogue(common))
    return show(answer, as_json=common.as_json, color=common.color)


@command.command("test")
@click.argument("names", nargs=-1, metavar="[RULE…]", shell_complete=_rule_names)
@options.common
def test(names: tuple[str, ...], common: options.Common) -> int:
    """Run the tests that sit in the rules; exit with 1 if one fails."""
    from bot.surfaces.cli.progress import Progress  # noqa: PLC0415

    with Progress("testing rules"):
        answer = _remote(common, "test", *names) or _tested(names, common)
    return show(answer, as_json=common.as_json, color=common.color, fail_on=Level.CRITICAL)


def _tested(names: tuple[str, ...], common: options.Common) -> Answer:
    """Run tests; what is broken in an overlay is the error of the answer, and said once."""
    from bot.commands import ruletests  # noqa: PLC0415
    from bot.surfaces.cli.inputs import overlays  # noqa: PLC0415
    from engine.catalogue import load_catalogue  # noqa: PLC0415

    catalogue = load_catalogue(overlays(common), strict=False)
    try:
        answer = ruletests.run(names, catalogue)
    except UsageError:  # a rule that is not there may have been left out
        warn(catalogue.left_out)
        raise
    warn(catalogue.switched_off)
    return answer


@command.command("why-not")
@click.argument("rule", shell_complete=_rule_names)
@click.argument("target")
@options.source
@options.period
@options.common
def why_not(
    *,
    rule: str,
    target: str,
    source: options.SourceOptions,
    at: float | None,
    window: float | None,
    common: options.Common,
) -> int:
    """Say why RULE, a cause or a symptom, did not fire for TARGET: what it needs, what was read."""
    if common.server:
        from bot.surfaces.cli.remote import ask, no_source  # noqa: PLC0415

        no_source(source)
        args = {"action": "why-not", "name": rule, "target": target, "at": at, "window": window}
        answer = ask(common, "rules", args)
    else:
        answer = asyncio.run(_why_not(rule, target, source, at, window, common))
    return show(answer, as_json=common.as_json, color=common.color)


async def _why_not(
    rule: str,
    target: str,
    source: options.SourceOptions,
    at: float | None,
    window: float | None,
    common: options.Common,
) -> Answer:
    from bot.commands import whynot  # noqa: PLC0415
    from bot.surfaces.cli.inputs import prepare  # noqa: PLC0415
    from bot.surfaces.cli.progress import Progress  # noqa: PLC0415

    with Progress("reading") as progress:
        setup = prepare(common, source, progress)
        try:
            return await whynot.run(
                rule,
                target,
                engine=setup.engine,
                source=setup.source,
                at=at,
                window_s=window or setup.settings.window,
            )
        finally:
            await setup.aclose()


command.add_command(backtest.command)


@command.command("lint")
@options.common
def lint(common: options.Common) -> int:
    """Check knowledge and rules, and name every problem; exit with 2 if there is one."""
    from bot.commands import rules  # noqa: PLC0415
    from bot.surfaces.cli.inputs import overlays  # noqa: PLC0415
    from bot.surfaces.cli.progress import Progress  # noqa: PLC0415

    with Progress("checking"):
        answer = _remote(common, "lint") or rules.lint(overlays(common))
    return show(answer, as_json=common.as_json, color=common.color)
