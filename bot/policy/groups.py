"""Who is in which Slack user group, learned in the background.

A decision must not wait for Slack, so memberships are fetched beforehand, only for groups that
the policy names. Until they are known, and when they have become too old, rules that allow a group
allow nobody and rules that deny it deny everybody (see `PolicyRule.concerns`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from bot.policy.rules import UNKNOWN_GROUPS
from bot.request import Actor, ActorKind
from engine.errors import GpuwhyError

log = logging.getLogger(__name__)

_REFRESH_S = 300.0
# Slack away for an hour must not lock everybody out; a day-old list must not let anybody in.
_TOO_OLD_S = 3600.0

Fetch = Callable[[str], Awaitable[Iterable[str]]]


class GroupBook:
    """Memberships of the groups that the policy names.

    Args:
        groups: ids of the groups.
        fetch: returns the user ids of a group; raises `GpuwhyError` if Slack does not tell.
        clock: monotonic seconds.
    """

    def __init__(self, groups: Iterable[str], fetch: Fetch, clock: Callable[[], float]) -> None:
        self._groups = tuple(groups)
        self._fetch = fetch
        self._clock = clock
        self._members: dict[str, tuple[float, frozenset[str]]] = {}

    def known(self, actor: Actor) -> Actor:
        """Return the actor with the groups it is in; ``?`` is one of them if some are unknown."""
        if actor.kind is not ActorKind.SLACK or not self._groups:
            return actor
        now = self._clock()
        found = []
        for group in self._groups:
            at, members = self._members.get(group, (float("-inf"), frozenset()))
            if now - at > _TOO_OLD_S:
                found.append(UNKNOWN_GROUPS)
            elif actor.id in members:
                found.append(group)
        return replace(actor, groups=tuple(sorted(set(found))))

    async def refresh(self) -> None:
        """Fetch every group once; one that cannot be fetched keeps what was known of it."""
        for group in self._groups:
            try:
                members = frozenset(await self._fetch(group))
            except GpuwhyError as error:
                log.warning("members of Slack group %s: %s", group, error.one_line())
            else:
                self._members[group] = (self._clock(), members)

    async def run(self) -> None:
        """Keep the memberships fresh until cancelled."""
        while self._groups:
            await self.refresh()
            await asyncio.sleep(_REFRESH_S)
