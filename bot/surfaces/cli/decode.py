"""``gpuwhy decode``. Everything imported here is paid for at every start: standard library only."""

from __future__ import annotations

import click

from bot.commands import decode
from bot.surfaces.cli import options
from bot.surfaces.cli.inputs import load
from bot.surfaces.cli.output import show


@click.command("decode")
@click.argument("text", nargs=-1, required=True)
@options.common
def command(text: tuple[str, ...], common: options.Common) -> int:
    """Decode one thing.

    \b
    gpuwhy decode 0x48             a throttle mask
    gpuwhy decode xid 79           an Xid
    gpuwhy decode sxid 12028       an NVSwitch error
    gpuwhy decode field 1003       a DCGM field
    gpuwhy decode DCGM_FI_DEV_GPU_TEMP   a metric
    gpuwhy decode 72               ambiguous: every reading is given
    """  # noqa: D301 - \b is click's mark for text that is not to be wrapped
    if common.server:
        from bot.surfaces.cli.remote import ask  # noqa: PLC0415 - not paid for without --server

        answer = ask(common, "decode", {"text": " ".join(text)})
    else:
        answer = decode.run(" ".join(text), catalogue=load(common, rules=False))
    return show(answer, as_json=common.as_json, color=common.color)
