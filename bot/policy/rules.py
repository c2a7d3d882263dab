"""One rule of the policy: whom, where, what and which targets it is about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from bot.request import Actor, ActorKind

EVERYONE = "*"
# What can stand before the colon in `who`.
KINDS = ("user", "group", "token", "local")
_KIND_OF = {ActorKind.SLACK: "user", ActorKind.TOKEN: "token", ActorKind.LOCAL: "local"}


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """Allows or denies; an empty part of it is about everything.

    All patterns are globs (``*``, ``?``, ``[4-7]``); case does not matter for targets, since host
    names have none.

    Attributes:
        allow: False denies.
        who: ``user:U…``, ``group:S…`` (Slack user group), ``token:NAME``, ``local:LOGIN`` or ``*``.
        channels: Slack channel ids.
        commands: names of commands, and ``approve`` for the approval of captures.
        targets: names of targets (``node-3:5``); one of a host covers its GPUs too.
    """

    allow: bool
    who: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()

    def concerns(self, actor: Actor, command: str) -> bool:
        """Return whether the rule is about this actor, where it asks, and this command.

        Groups that could not be learned (``?`` in `Actor.groups`) are taken for members by a rule
        that denies and for strangers by one that allows.
        """
        return (
            (not self.who or any(self._names(pattern, actor) for pattern in self.who))
            and (not self.channels or _any(self.channels, [actor.channel]))
            and (not self.commands or _any(self.commands, [command]))
        )

    def covers(self, names: Iterable[str]) -> bool:
        """Return whether one of a target's names is meant."""
        folded = [name.casefold() for name in names]
        return not self.targets or _any([p.casefold() for p in self.targets], folded)

    def _names(self, pattern: str, actor: Actor) -> bool:
        if pattern == EVERYONE:
            return True
        kind, _, name = pattern.partition(":")
        if kind == "group":
            unknown = UNKNOWN_GROUPS in actor.groups
            return _any([name], actor.groups) if not unknown else not self.allow
        return kind == _KIND_OF[actor.kind] and fnmatchcase(actor.id, name)


# Stands in `Actor.groups` while the members of a group that the policy names are not known.
UNKNOWN_GROUPS = "?"


def _any(patterns: Iterable[str], names: Iterable[str]) -> bool:
    known = list(names)
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in known)
