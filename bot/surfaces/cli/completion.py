"""``gpuwhy completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> int:
    """Print the completion script for SHELL.

    \b
    bash: gpuwhy completion bash > ~/.local/share/bash-completion/completions/gpuwhy
    zsh:  gpuwhy completion zsh > "${fpath[1]}/_gpuwhy"
    fish: gpuwhy completion fish > ~/.config/fish/completions/gpuwhy.fish
    """  # noqa: D301 - \b is click's mark for text that is not to be wrapped
    made = get_completion_class(shell)
    assert made is not None
    root = context.find_root().command
    click.echo(made(root, {}, "gpuwhy", "_GPUWHY_COMPLETE").source())
    return 0
