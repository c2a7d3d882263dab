"""``gpuwhy calc``."""

from __future__ import annotations

import click

from bot.surfaces.cli import options
from bot.surfaces.cli.output import show


@click.command("calc")
@click.argument("words", nargs=-1, metavar="[NAME [INPUT=VALUE]...]")
@options.common
def command(words: tuple[str, ...], common: options.Common) -> int:
    """Work out a formula; without a name list the calculators, without inputs describe one.

    \b
    gpuwhy calc busbw algbw=188.5 ranks=8
    gpuwhy calc checkpoint params=70B bytes_per_param=16 bandwidth=50GB/s
    gpuwhy calc ridge gpu=h100_sxm intensity=100
    gpuwhy calc kv_cache layers=80 kv_heads=8 tokens=8k memory=40GB dtype=fp8
    gpuwhy calc mfu params=70B tokens_per_s=100k gpus=256 gpu=h100_sxm
    """  # noqa: D301 - \b is click's mark for text that is not to be wrapped
    if common.server:
        from bot.surfaces.cli import remote  # noqa: PLC0415

        answer = remote.ask(common, "calc", {"words": list(words)})
    else:
        from bot.commands import calc  # noqa: PLC0415 - so that --help starts fast
        from bot.surfaces.cli.inputs import load  # noqa: PLC0415

        answer = calc.run(words, catalogue=load(common))
    return show(answer, as_json=common.as_json, color=common.color)
