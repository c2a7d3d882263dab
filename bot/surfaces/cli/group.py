"""The command group: a subcommand is imported when it is run, so that a short one starts fast."""

from __future__ import annotations

from importlib import import_module

import click

from engine.catalogue.nearest import did_you_mean
from engine.errors import UsageError

# Name, module below this package that defines `command`, and the line shown by --help.
COMMANDS: dict[str, tuple[str, str]] = {
    "why": ("why", "Say why a GPU, node, pod or job is slow, with the proof."),
    "sweep": ("sweep", "Find everything that is sick, worst first, by root cause."),
    "watch": ("watch", "Sweep again and again; tell what opens, changes and closes."),
    "decode": ("decode", "Decode a throttle mask, Xid, DCGM field or metric name."),
    "read": ("read", "Say what a log, nvidia-smi output or metrics text shows."),
    "nccl": ("nccl", "Say how long NCCL's collectives took, and serve it to Prometheus."),
    "ask": ("ask", "Ask which tool, which command, which threshold, what something means."),
    "calc": ("calc", "Work out busbw, checkpoint time, roofline, KV cache or MFU."),
    "capture": ("capture", "Plan and run a profile of a program on a GPU."),
    "rules": ("rules", "List, show, test and lint the rules."),
    "kb": ("kb", "List, show, search and lint the knowledge base."),
    "export": ("export", "Write rules for Prometheus, a Grafana dashboard, Alertmanager routes."),
    "serve": ("serve", "Run the Slack bot and the HTTP API."),
    "demo": ("demo", "Run everything on a simulated fleet; nothing to configure."),
    "schema": ("schema", "Print the JSON Schema of an answer."),
    "completion": ("completion", "Print the completion script for a shell."),
}


class NamingGroup(click.Group):
    """A group that offers the nearest name when it does not know a command.

    Without a command it prints its help, as ``--help`` does.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Print the help if nothing is given; else as any group."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command to run.

        Raises:
            UsageError: there is none of that name.
        """
        known = self.list_commands(ctx)
        if args and args[0] not in known and not ctx.resilient_parsing:
            hint = did_you_mean(args[0], known, otherwise=f"use one of {', '.join(known)}")
            said = f"no command {args[0]!r} in {ctx.command_path}"
            raise UsageError(said, hint=hint, code="unknown_command")
        return super().resolve_command(ctx, args)


class LazyGroup(NamingGroup):
    """A group that imports a command only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None if there is no such name."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"bot.surfaces.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])
