"""``gpuwhy ask``."""

from __future__ import annotations

import click

from bot.surfaces.cli import options
from bot.surfaces.cli.output import show


@click.command("ask")
@click.argument("text", nargs=-1, required=True)
@click.option("--after", metavar="QUESTION", help="The question before, if this one follows it.")
@options.common
def command(text: tuple[str, ...], after: str | None, common: options.Common) -> int:
    """Answer a question from the knowledge base.

    \b
    gpuwhy ask which tool shows gaps between kernels
    gpuwhy ask "how do I see PCIe traffic of gpu 5 on node-3"
    gpuwhy ask "and on AMD?" --after "which tool shows gaps between kernels"
    """  # noqa: D301 - \b is click's mark for text that is not to be wrapped
    question = " ".join(text)
    if common.server:
        from bot.surfaces.cli import remote  # noqa: PLC0415

        answer = remote.ask(common, "ask", {"text": question, "after": after})
    else:
        from bot.commands import ask  # noqa: PLC0415 - so that --help starts fast
        from bot.surfaces.cli.inputs import load  # noqa: PLC0415

        answer = ask.run(question, catalogue=load(common), after=after)
    return show(answer, as_json=common.as_json, color=common.color)
