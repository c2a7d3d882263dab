"""Every use is in the audit log, newest first, page by page."""

from __future__ import annotations

from bot.store import Decision, Store
from tests.support.stores import NOW


async def test_uses_are_listed_newest_first_in_pages(store: Store) -> None:
    for n in range(5):
        await store.add_audit(
            actor={"kind": "token", "id": "grafana"},
            surface="api",
            command="why",
            target=f"node-{n}:5\0",
            decision=Decision.DENY if n % 2 else Decision.ALLOW,
            reason="no permission" if n % 2 else "permission readers",
            request_id=None if n % 2 else f"q{n}",
            now=NOW + n // 2,  # two at the same moment
        )

    first = await store.list_audit(limit=2)
    second = await store.list_audit(limit=2, before=first[-1])
    rest = await store.list_audit(before=second[-1])

    targets = [entry.target for entry in (*first, *second, *rest)]
    assert targets == [f"node-{n}:5\N{REPLACEMENT CHARACTER}" for n in (4, 3, 2, 1, 0)]
    entry = first[1]
    assert (entry.at, entry.decision, entry.request_id) == (NOW + 1, Decision.DENY, None)
    assert (entry.surface, entry.command, entry.reason) == ("api", "why", "no permission")
    assert entry.actor == {"kind": "token", "id": "grafana"}
    assert await store.list_audit(before=rest[-1]) == ()
