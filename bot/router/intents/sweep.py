"""A question about the fleet as a whole."""

from __future__ import annotations

from bot.request import Json
from bot.router import vocabulary as v
from bot.router.clauses import Clause
from bot.router.intents.manner import asks, narrates, ordered_verb
from bot.router.intents.subject import unknown
from bot.router.spans import any_of, shape, word_set

_KNOWN = v.COMMON | v.FLEET | v.SWEEP
_MANY = v.FLEET - word_set("gpu node host machine server anything something anybody anyone who")
_SHOWS = word_set("show list find tell give see know")
# Words that say a thing is well only where they are asked about.
_WELL = v.HEALTH - word_set("well good great going doing up performing work works")
_REPORT = word_set("status health state condition overview")
_HEALTH_CHECK = {"health", "check"}
_HOW = shape(r"\bhow (?:is|are)\b")
_RUN = shape(
    r"^(?:\w+ )*(?:run|do|start|make|need|want) (?:an? |the |another )?(?:\w+ )?(?:sweep|scan)\b"
)
# Questions about things that are broken, which need not say that they mean GPUs.
_BROKEN = shape(
    r"(?:what|which|any|who|list|show|find|all) ",
    r"(?:(?:me|all|the|on|is|are|was|were|other|new) )*",
    any_of(
        "broken sick down degraded slow unhealthy failing failed throttling throttled red dead",
        "fire overheating incident incidents problem problems issue issues error errors fault",
        "faults straggler stragglers",
    ),
    r"\b|what needs attention",
)


def sweep(clause: Clause) -> dict[str, Json] | None:
    """Return which part of the fleet a clause asks about; all of it if ``where`` is absent."""
    selectors = clause.values("SELECTOR")
    tokens = set(clause.tokens)
    if "NAMED" in tokens or set(clause.values("TARGET")) - {"fleet"} or unknown(clause, _KNOWN):
        return None
    named = bool(selectors) or "TARGET" in tokens
    ordered = ordered_verb(clause) in v.SWEEP or bool(_RUN.search(clause.shape))
    if ordered or ("why" not in tokens and not narrates(clause) and _fits(clause, named=named)):
        return {"where": ",".join(selectors)} if selectors else {}
    return None


def _fits(clause: Clause, *, named: bool) -> bool:
    words = set(clause.words)
    asked = asks(clause)
    some, many = named or bool(v.FLEET & words), named or bool(_MANY & words)
    said = [word for word in clause.words if word not in v.POLITE]
    if asked or ordered_verb(clause) in _SHOWS:
        if v.COMPLAINT & words or "CODE" in clause.tokens:
            return (some if asked else many) or bool(_BROKEN.match(" ".join(said)))
        return some and bool((_WELL | v.LOOK) & words or _HOW.search(clause.shape))
    if not some:
        return set(said) == _HEALTH_CHECK
    ordered = many and ordered_verb(clause) in v.LOOK - {"help", "explain"}
    return ordered or (len(set(said)) <= 3 and bool(_REPORT & words))
