"""Short ways to fill a store in tests."""

from __future__ import annotations

from bot.store import Added, Delivery, DeliveryKind, NewDelivery, Question, Store

NOW = 1_800_000_000.0
LEASE_S = 60.0


async def ask(store: Store, key: str = "k1", *, now: float = NOW, **more: object) -> Added:
    """Add a question; only what matters to the test is given."""
    given = {
        "dedupe_key": key,
        "surface": "command",
        "actor": {"kind": "slack", "id": "U1"},
        "channel": "C1",
        "request": {"command": "decode", "args": {"text": key}, "text": key},
        "now": now,
        **more,
    }
    return await store.add_question(**given)  # type: ignore[arg-type]


async def claim(store: Store, worker: str = "w1", *, now: float = NOW) -> Question | None:
    return await store.claim_question(worker, lease_s=LEASE_S, now=now)


async def send_next(
    store: Store, sender: str = "s1", *, now: float = NOW, pace_s: float = 0.0
) -> Delivery | None:
    return await store.claim_delivery(sender, lease_s=LEASE_S, pace_s=pace_s, now=now)


def post(text: str = "hello", channel: str = "C1", **more: object) -> NewDelivery:
    return NewDelivery(DeliveryKind.POST, channel, {"text": text}, **more)  # type: ignore[arg-type]


def edit(text: str, channel: str = "C1", **more: object) -> NewDelivery:
    return NewDelivery(DeliveryKind.UPDATE, channel, {"text": text}, **more)  # type: ignore[arg-type]
