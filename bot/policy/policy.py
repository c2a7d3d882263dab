"""Decisions: a rule that denies wins over any that allows; where none speaks, the default does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.policy.errors import RefusedError
from bot.policy.names import Names, named_in, names_of
from bot.policy.rules import PolicyRule
from bot.request import Actor, Request

# Commands that touch a machine: never allowed unless a rule says so.
CAREFUL = frozenset({"capture", "approve"})
# Commands that tell nothing about the fleet: whoever may talk to the bot may use them.
HARMLESS = frozenset({"help"})


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a use is allowed, and why; the reason is for the audit log and the asker."""

    allowed: bool
    reason: str


class Policy:
    """The rules of a site.

    Args:
        rules: in any order; messages number them from 1.
        open_by_default: whether commands that only look are allowed where no rule speaks.
    """

    def __init__(self, rules: Sequence[PolicyRule] = (), *, open_by_default: bool = True) -> None:
        self._rules = tuple(rules)
        self._open = open_by_default

    @property
    def groups(self) -> tuple[str, ...]:
        """Ids of the Slack user groups that the rules name, sorted."""
        named = (who for rule in self._rules for who in rule.who)
        return tuple(sorted({who.partition(":")[2] for who in named if who.startswith("group:")}))

    def decide(self, actor: Actor, request: Request) -> Decision:
        """Return whether an actor may use a command on a target."""
        return self._decide(actor, request.command, names_of(request))

    def check(self, actor: Actor, request: Request) -> None:
        """Let an allowed request pass.

        Raises:
            RefusedError: it is not allowed.
        """
        decision = self.decide(actor, request)
        if not decision.allowed:
            raise refusal(request.command, names_of(request).shown, decision)

    def recheck(self, actor: Actor, request: Request, answer: Mapping[str, Any]) -> Decision:
        """Return whether an actor may see an answer, now that it is known what it is about.

        A job, a pod or a UUID names its hosts only when it is answered; a denied host stays so.
        """
        if names_of(request).vague:
            return self.may_see(actor, request.command, answer)
        return Decision(True, "")

    def may_see(self, actor: Actor, command: str, answer: Mapping[str, Any]) -> Decision:
        """Return whether no rule denies an actor what a document is about: target and members."""
        for names in named_in(answer):
            denying = self._denying(actor, command, Names(names))
            if denying:
                return Decision(False, f"rule {denying} denies {names[0]}")
        return Decision(True, "")

    def _decide(self, actor: Actor, command: str, about: Names) -> Decision:
        if denying := self._denying(actor, command, about):
            return Decision(False, f"rule {denying} denies it")
        for number, rule in enumerate(self._rules, 1):
            if rule.allow and rule.concerns(actor, command) and _allowed(rule, about):
                return Decision(True, f"rule {number} allows it")
        if command in CAREFUL:
            return Decision(False, f"{command} needs a rule that allows it, and none does")
        if self._open or command in HARMLESS:
            return Decision(True, "allowed by default")
        return Decision(False, "no rule allows it")

    def _denying(self, actor: Actor, command: str, about: Names) -> int:
        """Return the number of the first rule that denies, 0 if none does."""
        for number, rule in enumerate(self._rules, 1):
            if not rule.allow and rule.concerns(actor, command) and _denied(rule, about):
                return number
        return 0


def refusal(command: str, target: str, decision: Decision) -> RefusedError:
    """Return the error for an actor who is refused."""
    what = f"{command} {target}".strip()
    return RefusedError(
        f"you may not use {what}: {decision.reason}",
        hint="ask whoever runs this bot for a rule in its policy",
    )


def _allowed(rule: PolicyRule, about: Names) -> bool:
    return not about.names or rule.covers(about.names)


def _denied(rule: PolicyRule, about: Names) -> bool:
    if not rule.targets:
        return True
    return bool(about.names) and (about.everything or rule.covers(about.names))


def unknown_commands(rules: Iterable[PolicyRule], known: Iterable[str]) -> list[str]:
    """Return the command names in rules that no command has; patterns are left alone."""
    names = {name for rule in rules for name in rule.commands if not set(name) & set("*?[")}
    return sorted(names - set(known) - CAREFUL)
