"""``gpuwhy schema``."""

from __future__ import annotations

import json

import click


@click.command("schema")
@click.argument("answer")
def command(answer: str) -> int:
    """Print the JSON Schema of what a command answers with --json.

    ANSWER is why, sweep, decode or read.
    """
    from engine.schema import schema  # noqa: PLC0415 - pydantic, not needed by other commands

    click.echo(json.dumps(schema(answer), indent=2))
    return 0
