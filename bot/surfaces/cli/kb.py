"""``gpuwhy kb``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bot.answer import Answer, Level
from bot.surfaces.cli import options
from bot.surfaces.cli.group import NamingGroup
from bot.surfaces.cli.output import show as show_answer

if TYPE_CHECKING:
    from engine.catalogue.types import Catalogue


def _catalogue(common: options.Common) -> Catalogue:
    from bot.surfaces.cli.inputs import load  # noqa: PLC0415 - so that --help starts fast

    return load(common)


def _remote(common: options.Common, action: str, text: str = "") -> Answer | None:
    """Have a server answer, if one is named."""
    if not common.server:
        return None
    from bot.surfaces.cli.remote import ask  # noqa: PLC0415

    return ask(common, "kb", {"action": action, "text": text or None})


@click.group("kb", cls=NamingGroup)
def command() -> None:
    """List, show, search and lint the knowledge base."""


@command.command("list")
@click.argument("concern", default="")
@options.common
def list_(concern: str, common: options.Common) -> int:
    """List the concerns, or the entries of one."""
    from bot.commands import kb  # noqa: PLC0415

    answer = _remote(common, "list", concern) or kb.list_entries(_catalogue(common), concern)
    return show_answer(answer, as_json=common.as_json, color=common.color)


@command.command("show")
@click.argument("entry")
@options.common
def show(entry: str, common: options.Common) -> int:
    """Show one entry in full, by CONCERN/ID."""
    from bot.commands import kb  # noqa: PLC0415

    answer = _remote(common, "show", entry) or kb.show(entry, _catalogue(common))
    return show_answer(answer, as_json=common.as_json, color=common.color)


@command.command("search")
@click.argument("text", nargs=-1, required=True)
@options.common
def search(text: tuple[str, ...], common: options.Common) -> int:
    """Find entries by words, best first."""
    from bot.commands import kb  # noqa: PLC0415

    words = " ".join(text)
    answer = _remote(common, "search", words) or kb.search(words, _catalogue(common))
    return show_answer(answer, as_json=common.as_json, color=common.color)


@command.command("lint")
@options.common
def lint(common: options.Common) -> int:
    """Check the knowledge base, the site's overlays included."""
    from bot.commands import kb  # noqa: PLC0415
    from bot.surfaces.cli.inputs import overlays  # noqa: PLC0415

    answer = _remote(common, "lint") or kb.lint(overlays(common))
    status = show_answer(answer, as_json=common.as_json, color=common.color)
    return 1 if answer.level >= Level.CRITICAL else status


@command.command("reference")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@options.common
def reference(folder: Path, common: options.Common) -> int:
    """Write the reference as Markdown pages into FOLDER, a page a concern."""
    from bot.commands import kb  # noqa: PLC0415

    answer = kb.reference(folder, _catalogue(common))
    return show_answer(answer, as_json=common.as_json, color=common.color)
