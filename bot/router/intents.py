"""What a clause asks for: one rule a command, each certain or silent.

A rule returns arguments or None. Where a clause could mean two things, or speaks of something that
no word list knows, None is right: the bot then says how to ask, which costs less than a wrong
answer. A capture disturbs a program, so its rule knows every word of the clause or stays silent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from bot.request import Json
from bot.router import vocabulary as v
from bot.router.clauses import Clause
from bot.router.targets import is_gpu
from engine.topology import parse_target

Args = dict[str, Json]
DEFAULT_PROFILER = "nsys"
DEFAULT_DURATION_S = 10.0

_KNOWN = v.FILLER | v.COMPLAINT | v.HEALTH | v.SUBJECT | v.LOOK | v.DEFINE
_ASKS_WHY = re.compile(
    r"\b(?:why|how come|for what reason|root cause"
    r"|what (?:\w+ ){0,2}?(?:wrong|matter|problem|issue|reason|cause|status|state|health|up|going on)"
    r"|what (?:is )?(?:happen|happens|happened|happening|ails|slows|makes|causes|limits|throttles)"
    r"|diagnose|troubleshoot|triage|investigate|diagnosis|explain)\b"
)
_ASKS_HOW = re.compile(
    r"\b(?:how (?:is|are|was|does|do|about|healthy|bad|slow|hot)|what about|status|state|health)\b"
)
_AUXILIARIES = frozenset("is are was were does do did has have had can could should will would am".split())
_ORDERS = frozenset(
    "capture profile trace record sweep scan check look diagnose run ask worry bother decode explain read"
    " need want inspect investigate do tell start touch show answer".split()
)
_FORBIDS = re.compile(r"\b(?:(?:do|need|should|must|would) not|never|no need(?: to)?|not necessary(?: to)?|stop|avoid|without|instead of|rather than|cancel|abort|skip)\b(?P<rest>.*)")
_WITHDRAWS = re.compile(
    r"\b(?:never mind|forget (?:it|that|about)|ignore (?:that|this|me|my|it)|scratch that|wrong channel|wrong thread|cancel that)\b"
)
_HANDS_ON = re.compile(
    r"\b(?:reboot|restart|drain|cordon|uncordon|reset|kill|fix|repair|replace|move|delete|remove|add|install"
    r"|reinstall|upgrade|update|buy|order|book|reserve|allocate|ssh|login|log|connect|access|mount|ping|rename"
    r"|free|release|use|clean|deploy|schedule|stop|pause|silence|mute)(?:ed|d|ing|s)?(?: \w+){0,2} TARGET"
)
_ABOUT_OTHERS = re.compile(r"\b(?:why|how come|what) (?:did|do|does|are|were|is|was|would|have|has|can) (?:you|he|she|they|anyone|nobody|everybody)\b")
_LEAVES_OUT = re.compile(r"\b(?:than|vs|versus|compared|unlike|like|while|whereas)\b")


def forbidden(clause: Clause) -> bool:
    """Return whether a clause says not to do something ("don't check", "no need to look")."""
    found = _FORBIDS.search(clause.shape)
    if not found or re.match(r"(?:why|what|how come|does|is|are|has|have)\b", clause.shape):
        return bool(found and found[0].startswith(("stop", "cancel", "abort")))
    return bool(_ORDERS & set(found["rest"].split()) or found[0].split()[0] in {"stop", "cancel", "abort", "avoid", "skip"})


def withdrawn(clause: Clause) -> bool:
    """Return whether a clause takes back what the message asks."""
    return bool(_WITHDRAWS.search(clause.shape))


def why(clause: Clause) -> Args | None:
    """Understand a question about one target, or a complaint about it."""
    target = one_target(clause)
    shape, words = clause.shape, clause.words
    if target is None or _HANDS_ON.search(shape) or _ABOUT_OTHERS.search(shape):
        return None
    sure = is_gpu(target)
    unknown = sum(word not in _KNOWN and word not in v.SETTLED for word in words)
    complains = bool(v.COMPLAINT & set(words)) or "CODE" in clause.tokens or "REASON" in clause.tokens
    if _ASKS_WHY.search(shape):
        fits = unknown <= 6 if sure else unknown == 0 or (unknown == 1 and complains)
    elif v.SETTLED & set(words):
        fits = False
    elif _asks(clause):
        told = complains or bool(v.HEALTH & set(words)) or _ASKS_HOW.search(shape)
        fits = unknown <= sure and bool(told or not _about_something(words))
    elif v.LOOK & set(words) and not _narrates(clause):
        fits = unknown <= sure
    elif _ASKS_HOW.search(shape):
        fits = unknown == 0 and not _narrates(clause) and not _is_statement(clause)
    elif complains:
        fits = unknown <= (2 if sure else 0) and not _narrates(clause) and not _praises(words)
    else:
        fits = not _about_something(words) and not _narrates(clause) and not _is_statement(clause)
    return {"target": target} if fits else None


def decode(clause: Clause) -> Args | None:
    """Understand a question what one code, mask, field or name means."""
    codes = clause.values("CODE")
    spoken = clause.values("REASON")
    defines = bool(v.DEFINE & set(clause.words)) or _asks_what(clause)
    if not codes and len(spoken) == 1 and defines and not _targeted(clause):
        return {"text": spoken[0]} if _unknown(clause) <= 1 else None
    if len(codes) != 1:
        return _decode_number(clause)
    unknown = _unknown(clause)
    if _targeted(clause):
        fits = bool(v.DEFINE & set(clause.words)) and unknown <= 2
    elif defines:
        fits = unknown <= 3
    elif clause.question and v.SEVERITY & set(clause.words):
        fits = unknown <= 2
    elif _narrates(clause):
        fits = False
    else:
        fits = all(word in v.FILLER or word in {"error", "code", "reason", "reasons"} for word in clause.words)
    return {"text": codes[0]} if fits else None


def sweep(clause: Clause) -> Args | None:
    """Understand a question about the fleet as a whole."""
    selectors = clause.values("SELECTOR")
    words = [word for word in clause.words if word not in {"where"}]
    if "NAMED" in clause.tokens or set(clause.values("TARGET")) - {"fleet"} or _unknown(clause):
        return None
    where: Args = {"where": ",".join(selectors)} if selectors else {}
    fleet = "TARGET" in clause.tokens or bool(v.FLEET & set(words)) or bool(selectors)
    ordered = _first(words) in v.SWEEP or (_polite_order(clause) in v.SWEEP)
    if ordered:
        return where
    sick = bool((v.COMPLAINT | {"unhealthy"}) & set(words)) or "CODE" in clause.tokens
    if _narrates(clause) or v.SETTLED & set(words) or "why" in words or not fleet_words(clause, fleet):
        return None
    asks = clause.question or _first(words) in _ASKING or _polite_order(clause) in _SHOWING
    if sick and asks:
        return where
    healthy = bool((v.HEALTH - {"well", "good", "great", "going", "doing", "up"}) & set(words))
    if fleet and healthy and (asks or len(words) <= 3 and {"status", "health"} & set(words)):
        return where
    if fleet and (v.LOOK & set(words)) and not {"help", "explain", "understand"} & set(words):
        return where
    return where if fleet and _ASKS_HOW.search(clause.shape) and clause.question else None


def capture(clause: Clause) -> Args | None:
    """Understand an order to record one target; every word must belong to the order."""
    target = one_target(clause)
    spans = [mark.value for mark in clause.marks if mark.kind == "SPAN"]
    if target is None or target == "fleet" or len(spans) > 1:
        return None
    if {mark.kind for mark in clause.marks} - {"TARGET", "SPAN"}:
        return None
    named = [v.PROFILERS[word] for word in clause.words if word in v.PROFILERS]
    if len(set(named)) > 1:
        return None
    words = [word for word in clause.words if word not in v.PROFILERS and word not in _AROUND_ORDER]
    typed = set(clause.typed)
    exact = bool(typed & (v.CAPTURE | v.RECORDING)) or bool(named)
    if not exact or not _is_order(words, bool(named)):
        return None
    return {
        "profiler": named[0] if named else DEFAULT_PROFILER,
        "target": target,
        "duration_s": spans[0] if spans else DEFAULT_DURATION_S,
    }


def help_(clause: Clause) -> Args | None:
    """Understand a question how to ask, or how a command is used."""
    if clause.marks:
        return None
    words = [word for word in clause.words if word not in v.POLITE - {"bot", "gpuwhy"}]
    shape = " ".join(words)
    if _HELP.fullmatch(shape):
        return {}
    found = _HELP_WITH.fullmatch(shape)
    if not found:
        return None
    topic = _TOPICS.get(found["topic"], found["topic"])
    return {"topic": topic}


def rules(clause: Clause) -> Args | None:
    """Understand a wish to see the rules, or one of them."""
    shape = " ".join(word for word in clause.tokens if word not in v.POLITE)
    if re.fullmatch(r"(?:(?:can|could|would|will) you )?(?:(?:list|show|give|tell)(?: me)? )?(?:all )?(?:the |your )?rules"
                    r"|(?:what|which) (?:are )?(?:the |your )?rules(?: (?:do you|you|are there)(?: (?:have|know|use|apply))?)?", shape):
        return {"action": "list"}
    if re.fullmatch(r"(?:show|explain)(?: me)? (?:the )?rule CODE", shape):
        return {"action": "show", "name": clause.values("CODE")[0]}
    return None


def one_target(clause: Clause) -> str | None:
    """Return the one target of a clause; a GPU and its host named apart are one.

    What follows "than", "like" or "compared to" is not what is asked about.
    """
    if "NAMED" in clause.tokens:
        return None
    targets = clause.values("TARGET")
    if len(targets) > 1:
        said = clause.shape[: m.start()] if (m := _LEAVES_OUT.search(clause.shape)) else clause.shape
        targets = targets[: said.split().count("TARGET")] or targets
    if len(targets) == 2:
        targets = _joined(*targets)
    return targets[0] if len(targets) == 1 else None


def _joined(one: str, other: str) -> list[str]:
    first, second = parse_target(one), parse_target(other)
    if first.host is None and first.gpu is not None:
        first, second = second, first
    if first.host and first.gpu is None and second.gpu is not None:
        if second.host is None:
            return [f"{first.text}:{second.gpu}"]
        if second.host == first.host:
            return [second.text]
    return [one, other] if (second.host, second.gpu) != (first.host, None) else [one]


def _targeted(clause: Clause) -> bool:
    return bool({"TARGET", "NAMED"} & set(clause.tokens))


def _unknown(clause: Clause) -> int:
    return sum(word not in _KNOWN | v.FLEET | v.SWEEP | v.SEVERITY for word in clause.words)


def _first(words: Iterable[str]) -> str:
    return next((word for word in words if word not in v.POLITE), "")


def _polite_order(clause: Clause) -> str:
    """Return the verb of "can you check …", "could you please check …", "I want to check …"."""
    shape = " ".join(word for word in clause.words if word not in v.POLITE)
    found = re.match(r"(?:(?:can|could|would|will) (?:you|we|i)|i (?:want|need|would like)(?: you)? to|lets)(?: just)? (\w+)", shape)
    return found[1] if found else ""


def _asks(clause: Clause) -> bool:
    first = _first(clause.words)
    return clause.question or (first in _AUXILIARIES and clause.tokens.index(first) == _start(clause))


def _start(clause: Clause) -> int:
    return next((i for i, token in enumerate(clause.tokens) if token not in v.POLITE), 0)


def _asks_what(clause: Clause) -> bool:
    return bool(re.search(r"\bwhat (?:is|are|does|do|was) (?:an? |the )?(?:\w+ )?(?:CODE|REASON)", clause.shape)) or bool(
        re.search(r"\b(?:why|what)\b.*\b(?:get|got|see|seeing|have|getting|say|says|mean)\b", clause.shape)
    )


def _about_something(words: Iterable[str]) -> bool:
    return any(word not in v.FILLER for word in words)


def _narrates(clause: Clause) -> bool:
    """Return whether a clause tells of the past or repeats what somebody said."""
    words = set(clause.words)
    past = bool({"was", "were", "had", "did"} & words) and not _asks(clause)
    return past or bool(v.SETTLED & words) or bool({"THEN", "AT"} & set(clause.tokens) and not _asks(clause) and "is" in words)


def _is_statement(clause: Clause) -> bool:
    return not clause.question and bool({"is", "are", "has", "have", "was", "looks", "seems", "i", "we", "he", "she", "they"} & set(clause.words))


def _praises(words: Iterable[str]) -> bool:
    said = set(words)
    return bool({"not", "no", "never", "longer"} & said and said & v.COMPLAINT) and not {"working", "boosting"} & said


def fleet_words(clause: Clause, fleet: bool) -> bool:
    """Return whether a clause speaks of the fleet: by a noun, or by asking what is broken."""
    if fleet:
        return True
    return bool(re.match(r"(?:what|which|any) (?:is |are )?(?:\w+ )?(?:broken|sick|down|degraded|slow|unhealthy|failing|throttling|red|dead|problems?|issues?|errors?|faults?|incidents?)\b", " ".join(w for w in clause.words if w not in v.POLITE)))


def _is_order(words: list[str], named: bool) -> bool:
    shape = " ".join(words)
    if not shape:
        return named
    return bool(_ORDER.fullmatch(shape))


_ASKING = frozenset("is are any anything what which who how does do has have whats".split())
_SHOWING = frozenset("show list find tell check give see know look".split())
_AROUND_ORDER = frozenset("please pls plz kindly hey hi hello bot gpuwhy of on for with using by from now just quickly quick short again and".split())
_ORDER = re.compile(
    r"(?:(?:can|could|would|will) you |(?:i|we) (?:want|need|would like)(?: you)?(?: to)? )?"
    r"(?:(?:take|grab|get|run|start|do|make|collect|record|capture|give|have)(?: (?:me|us))? (?:an? |the )?(?:systems? )?"
    r"(?:profile|trace|capture|recording)|(?:an? )(?:systems? )?(?:profile|trace|capture|recording)|profile|capture|trace|record|run|start)"
)
_HELP = re.compile(
    r"(?:can you |could you |i need |some )?(?:help|usage|commands|manual)(?: me| us)?(?: out)?"
    r"|(?:what|which) (?:things |commands |questions )?(?:can|do|could) (?:you|i|we|gpuwhy|bot) (?:do|ask|say|know|understand|support|use)(?: you| here)?"
    r"|how (?:do|can|should|to) (?:(?:i|we|one) )?(?:use|ask|talk to|work with) (?:this|you|it|bot|gpuwhy|the bot)(?: bot)?"
    r"|how (?:does|do) (?:this|it|you|gpuwhy|the bot|this bot|bot) work|who are you|what are you"
    r"|what (?:commands|can i ask)(?: are there| exist)?|(?:show|list)(?: me)? (?:the |your |all )*(?:help|commands|usage)"
)
_HELP_WITH = re.compile(
    r"help (?:me )?(?:with |on |for |about )?(?P<topic>why|sweep|decode|read|capture|capturing|profiling|rules)"
    r"|how (?:do|can|should|to) (?:(?:i|we|one|you) )?(?P<verb>x)?"
)
_TOPICS = {"capturing": "capture", "profiling": "capture"}

RULES: tuple[tuple[str, Callable[[Clause], Args | None]], ...] = (
    ("capture", capture),
    ("help", help_),
    ("rules", rules),
    ("decode", decode),
    ("why", why),
    ("sweep", sweep),
)
