"""A question about the fleet as a whole."""

from __future__ import annotations

import re

from bot.request import Json
from bot.router import vocabulary as v
from bot.router.clauses import Clause
from bot.router.intents.manner import asks, first_token, narrates, ordered_verb
from bot.router.intents.subject import unknown

_KNOWN = v.COMMON | v.FLEET | v.SWEEP
_SHOWS = frozenset("show list find tell give see know".split())
# Words that say a thing is well only where they are asked about.
_HEALTHY = v.HEALTH - {
    "well",
    "good",
    "great",
    "going",
    "doing",
    "up",
    "performing",
    "work",
    "works",
}
_HOW = re.compile(r"\bhow (?:is|are)\b")
_REPORT = frozenset({"overview", "status", "health", "state", "condition"})
_RUN = re.compile(
    r"^(?:\w+ )*(?:run|do|start|make|need|want) (?:an? |the |another )?(?:\w+ )?(?:sweep|scan)\b"
)
_HEALTH_CHECK = frozenset({"health", "check"})
_BROKEN = re.compile(
    r"(?:what|which|any|who|list|show|find|all) (?:me |all |the |on |is |are |was |were |other |new )*(?:broken|sick|down|degraded|slow|unhealthy|failing|failed"
    r"|throttling|throttled|red|dead|overheating|needs attention|fire|incidents?|problems?|issues?|errors?|faults?|stragglers?)\b"
)


def sweep(clause: Clause) -> dict[str, Json] | None:
    """Return which part of the fleet a clause asks about, all of it if ``where`` is absent."""
    selectors = clause.values("SELECTOR")
    tokens = set(clause.tokens)
    if "NAMED" in tokens or set(clause.values("TARGET")) - {"fleet"} or unknown(clause, _KNOWN):
        return None
    named = bool(selectors) or "TARGET" in tokens
    where: dict[str, Json] = {"where": ",".join(selectors)} if selectors else {}
    if ordered_verb(clause) in v.SWEEP or _RUN.search(clause.shape):
        return where
    if narrates(clause) or "why" in tokens or not _fits(clause, named=named):
        return None
    return where


def _fits(clause: Clause, *, named: bool) -> bool:
    words = set(clause.words)
    sick = bool(v.COMPLAINT & words) or "CODE" in clause.tokens
    fleet = named or bool(v.FLEET & words)
    asked = asks(clause) or ordered_verb(clause) in _SHOWS
    if sick and asked:
        return fleet or bool(_BROKEN.match(" ".join(w for w in clause.words if w not in v.POLITE)))
    if not fleet:
        return words - v.POLITE == _HEALTH_CHECK
    if asked:
        return bool((_HEALTHY | v.LOOK) & words) or bool(_HOW.search(clause.shape))
    brief = len([word for word in words if word not in v.POLITE]) <= 3
    return ordered_verb(clause) in v.LOOK - {"help", "explain"} or (
        brief and bool(_REPORT & words) and first_token(clause) != "SPAN"
    )
