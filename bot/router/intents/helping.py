"""Questions how to ask, how a command is used, and which rules there are."""

from __future__ import annotations

from bot.request import Json
from bot.router import vocabulary as v
from bot.router.clauses import Clause
from bot.router.spans import shape

_COURTESY = v.POLITE - {"bot", "gpuwhy"}
_BOT = r"(?:this|you|it|(?:the |this )?bot|gpuwhy)"
_ONE = r"(?:you|i|we|gpuwhy|(?:this |the )?bot)"
_HOW = r"how (?:do|can|should|to|does) (?:(?:i|we|one|you) )?"
_HELP = shape(
    r"(?:(?:can|could) you |i need |some |show |give )*(?:help|usage|commands|manual)",
    r"(?: me| us)?(?: out)?",
    rf"|(?:what|which)(?: things| commands| questions)? (?:can|do|could|should) {_ONE}",
    r" (?:do|ask|say|know|understand|support|use|have)(?: you| here| it)?",
    rf"|{_HOW}(?:use|ask|talk to|work with) {_BOT}(?: something| things| questions)?",
    rf"|how (?:does|do) {_BOT} work|(?:who|what) are you",
    r"|what commands(?: are there| exist)?",
    r"|(?:show|list|tell)(?: me)? (?:the |your |all )*(?:help|commands|usage)",
)
_ABOUT = shape(
    r"help (?:me )?(?:with |on |for |about )?",
    r"(?P<topic>why|sweep|decode|read|capture|capturing|profiling|rules)",
    rf"|{_HOW}(?:(?:do|take|make|get|run|use) )?(?:(?:a|an|the) )?",
    r"(?P<verb>why|sweep|decode|capture|profile|trace|rules)(?: work)?",
    r"(?: (?:a|an|the|some|my) (?:gpu|gpus|node|job))?",
)
_TOPICS = {
    "capturing": "capture",
    "profiling": "capture",
    "profile": "capture",
    "trace": "capture",
}
_LIST_RULES = shape(
    r"rules|(?:(?:can|could|would|will) you )?(?:list|show|give|tell)(?: me)? (?:all )?",
    r"(?:the |your )?rules|(?:what|which) (?:are )?(?:the |your )?rules",
    r"(?: (?:do you|you|are there)(?: (?:have|know|use|apply))?)?",
)
_SHOW_RULE = shape(r"(?:show|explain)(?: me)? (?:the )?rule CODE")


def help_(clause: Clause) -> dict[str, Json] | None:
    """Return the topic that a clause wants help with; none for help in general."""
    said = _without_courtesy(clause)
    if _HELP.fullmatch(said):
        return {}
    found = _ABOUT.fullmatch(said)
    if not found:
        return None
    topic = found["topic"] or found["verb"]
    return {"topic": _TOPICS.get(topic, topic)}


def rules(clause: Clause) -> dict[str, Json] | None:
    """Return which rules a clause wants to see."""
    said = _without_courtesy(clause)
    if _LIST_RULES.fullmatch(said):
        return {"action": "list"}
    if _SHOW_RULE.fullmatch(said):
        return {"action": "show", "name": clause.values("CODE")[0]}
    return None


def _without_courtesy(clause: Clause) -> str:
    return " ".join(token for token in clause.tokens if token not in _COURTESY)
