"""How a clause is meant: asked, ordered, told, forbidden or taken back."""

from __future__ import annotations

import re

from bot.router import vocabulary as v
from bot.router.clauses import Clause

_AUXILIARIES = frozenset(
    "is are was were does do did has have had can could should will would am any anything".split()
)
_QUESTION_WORDS = frozenset("why what how which who where when".split())
_SUBJECTS = frozenset(
    "is are am has have was were had i we he she they looks seems needs runs works went".split()
)
_FORBIDS = re.compile(
    r"\b(?:(?:do|does|need|should|must|would|can|will) not|never|no need|not necessary|stop|avoid|skip"
    r"|without|instead of|rather than|cancel|abort)\b(?P<rest>.*)"
)
_STOPS = ("stop", "cancel", "abort", "avoid", "skip")
_ORDERS = frozenset(
    "capture captured capturing profile profiled profiling trace traced tracing record recorded sweep scan"
    " check checked checking look looked looking diagnose run running ask asked asking worry bother decode"
    " explain read need want inspect investigate do doing tell start touch show answer bothered".split()
)
_WITHDRAWS = re.compile(
    r"\b(?:never mind|forget (?:it|that|about)|ignore (?:that|this|me|my|it)|scratch that|cancel that"
    r"|wrong (?:channel|thread|window|person)|false alarm|not you)\b"
)
_THANKS = re.compile(
    r"(?:\w+ )?(?:thanks|thank you|thank|thx|cheers|kudos|props) (?:a lot |so much )?(?:for|to)\b"
)
_SETTLES = re.compile(
    r"no|nope|nah|(?:(?:so|and|no|ah|ok) )*(?:it|that|all|everything) (?:is |was |looks |works )?"
    r"(?:fine|ok|okay|good|fixed|solved|resolved|done|gone|well)(?: now| again)?"
    r"|(?:i |we )?(?:found|fixed|solved|got) (?:it|that)|(?:solved|fixed|found it|got it)"
)
_HANDS_ON = re.compile(
    r"\b(?:reboot|restart|drain|cordon|uncordon|reset|kill|fix|repair|replace|move|delete|remove|add"
    r"|install|reinstall|upgrade|update|buy|order|book|reserve|allocate|ssh|login|log|connect|access|mount"
    r"|ping|rename|free|release|clean|deploy|schedule|stop|pause|silence|mute|ignore|swap|return|unplug)"
    r"(?:p?ed|d|p?ing|s)?(?: \w+){0,2} TARGET"
)
_USES = re.compile(
    r"\b(?:use|using|run|start|take|get|want|need|keep|find|send|give|book|have)(?: me| us)? TARGET"
)
_OF_OTHERS = re.compile(
    r"\b(?:why|how come|what) (?:did|do|does|are|were|is|was|would|have|has|can)"
    r" (?:you|he|she|they|anyone|nobody|everybody|everyone)\b"
)


def asks(clause: Clause) -> bool:
    """Return whether a clause is a question: by its mark, or by the verb in front."""
    return clause.question or first_token(clause) in _AUXILIARIES | _QUESTION_WORDS


def first_token(clause: Clause) -> str:
    """Return the first token that is no courtesy, or an empty string."""
    return next((token for token in clause.tokens if token not in v.POLITE), "")


def ordered_verb(clause: Clause) -> str:
    """Return the verb of an order: of "check …", "can you please check …", "I want to check …"."""
    said = " ".join(token for token in clause.tokens if token not in v.POLITE)
    found = re.match(
        r"(?:(?:(?:can|could|would|will) (?:you|we|i|someone|anyone|somebody)|may i|lets|to"
        r"|(?:i|we) (?:would like|want|need)(?: you)?(?: to)?) )?(?:just |also )*(\w+)",
        said,
    )
    return found[1] if found else ""


def narrates(clause: Clause) -> bool:
    """Return whether a clause tells of the past, of what is settled, or of what others said."""
    words = set(clause.words)
    if v.SETTLED & words:
        return True
    return bool({"was", "were", "had", "did"} & words) and not asks(clause)


def states(clause: Clause) -> bool:
    """Return whether a clause has a subject and a verb of its own and asks nothing."""
    return not asks(clause) and bool(_SUBJECTS & set(clause.words))


def forbids(clause: Clause) -> bool:
    """Return whether a clause says not to do something ("don't check", "no need to look")."""
    found = _FORBIDS.search(clause.shape)
    if not found:
        return False
    if found[0].startswith(_STOPS) and first_token(clause) not in _QUESTION_WORDS:
        return True
    return first_token(clause) not in _QUESTION_WORDS and bool(_ORDERS & set(found["rest"].split()))


def thanks(clause: Clause) -> bool:
    """Return whether a clause thanks for something that was done."""
    return bool(_THANKS.match(clause.shape))


def withdraws(clause: Clause) -> bool:
    """Return whether a clause takes back what the message asks."""
    return bool(_WITHDRAWS.search(clause.shape))


def settles(clause: Clause) -> bool:
    """Return whether a clause says, after a question, that the matter is settled."""
    return bool(_SETTLES.fullmatch(clause.shape))


def speaks_of_others(clause: Clause) -> bool:
    """Return whether a clause asks what people do ("why did you …", "reboot node-3")."""
    return bool(
        _HANDS_ON.search(clause.shape)
        or _USES.search(clause.shape)
        or _OF_OTHERS.search(clause.shape)
    )
