"""How a clause is meant: asked, ordered, told, forbidden or taken back."""

from __future__ import annotations

from bot.router import vocabulary as v
from bot.router.clauses import Clause
from bot.router.spans import any_of, shape, word_set

_AUXILIARIES = word_set(
    "is are was were does do did has have had can could should will would am any anything"
)
_QUESTION_WORDS = word_set("why what how which who where when")
_PREDICATES = word_set(
    "is are am has have was were had i we he she they looks seems needs runs works went"
)
_FORBIDS = shape(
    r"\b(?:(?:do|does|need|should|must|would|can|will) not|never|no need|not necessary",
    r"|stop|avoid|skip|without|instead of|rather than|cancel|abort)\b(?P<rest>.*)",
)
_STOPS = ("stop", "cancel", "abort", "avoid", "skip")
_ORDERS = word_set(
    "answer ask asked asking bother bothered capture captured capturing check checked checking",
    "decode diagnose do doing explain inspect investigate look looked looking need profile",
    "profiled profiling read record recorded run running scan show start sweep tell touch trace",
    "traced tracing want worry",
)
_ORDERED = shape(
    r"(?:(?:(?:can|could|would|will) (?:you|we|i|someone|anyone|somebody)|may i|lets|to",
    r"|(?:i|we) (?:would like|want|need)(?: you)?(?: to)?) )?(?:just |also )*(?P<verb>\w+)",
)
_WITHDRAWS = shape(
    r"\b(?:never mind|forget (?:it|that|about)|ignore (?:that|this|me|my|it)|scratch that",
    r"|cancel that|wrong (?:channel|thread|window|person)|false alarm|not you)\b",
)
_SETTLES = shape(
    r"no|nope|nah|(?:(?:so|and|no|ah|ok) )*(?:it|that|all|everything) (?:(?:is|was|looks|works) )?",
    r"(?:fine|ok|okay|good|fixed|solved|resolved|done|gone|well)(?: now| again)?",
    r"|(?:i |we )?(?:found|fixed|solved|got) (?:it|that)|solved|fixed",
)
_THANKS = shape(
    r"(?:\w+ )?(?:thanks|thank you|thank|thx|cheers|kudos|props) (?:a lot |so much )?(?:for|to)\b"
)
_HANDS_ON = shape(
    r"\b",
    any_of(
        "access add allocate book buy clean connect cordon delete deploy drain fix free ignore",
        "install kill log login mount move mute order pause ping reboot reinstall release remove",
        "rename repair replace reserve reset restart return schedule silence ssh stop swap",
        "uncordon unplug update upgrade",
    ),
    r"(?:p?ed|d|p?ing|s)?(?: \w+){0,2} TARGET",
)
_USES = shape(
    r"\b(?:use|using|run|start|take|get|want|need|keep|find|send|give|book|have)(?: me| us)? TARGET"
)
_OF_OTHERS = shape(
    r"\b(?:why|how come|what) (?:did|do|does|are|were|is|was|would|have|has|can)",
    r" (?:you|he|she|they|anyone|nobody|everybody|everyone)\b",
)


def asks(clause: Clause) -> bool:
    """Return whether a clause is a question: by its mark, or by the word in front."""
    return clause.question or first_token(clause) in _AUXILIARIES | _QUESTION_WORDS


def first_token(clause: Clause) -> str:
    """Return the first token that is no courtesy, or an empty string."""
    return next((token for token in clause.tokens if token not in v.POLITE), "")


def ordered_verb(clause: Clause) -> str:
    """Return the verb of an order: of "check …", "can you please check …", "I want to check …"."""
    found = _ORDERED.match(" ".join(token for token in clause.tokens if token not in v.POLITE))
    return found["verb"] if found else ""


def narrates(clause: Clause) -> bool:
    """Return whether a clause tells of the past or of what is settled."""
    words = set(clause.words)
    past = bool({"was", "were", "had", "did"} & words) and not asks(clause)
    return past or bool(v.SETTLED & words)


def states(clause: Clause) -> bool:
    """Return whether a clause says something of a subject, and asks nothing."""
    return not asks(clause) and bool(_PREDICATES & set(clause.words))


def forbids(clause: Clause) -> bool:
    """Return whether a clause says not to do something ("don't check", "no need to look")."""
    found = _FORBIDS.search(clause.shape)
    if not found or first_token(clause) in _QUESTION_WORDS:
        return False
    return found[0].startswith(_STOPS) or bool(_ORDERS & set(found["rest"].split()))


def withdraws(clause: Clause) -> bool:
    """Return whether a clause takes back what the message asks."""
    return bool(_WITHDRAWS.search(clause.shape))


def settles(clause: Clause) -> bool:
    """Return whether a clause says, after a question, that the matter is settled."""
    return bool(_SETTLES.fullmatch(clause.shape))


def thanks(clause: Clause) -> bool:
    """Return whether a clause thanks for something that was done."""
    return bool(_THANKS.match(clause.shape))


def speaks_of_others(clause: Clause) -> bool:
    """Return whether a clause asks what people do ("why did you …", "reboot node-3")."""
    return any(what.search(clause.shape) for what in (_HANDS_ON, _USES, _OF_OTHERS))
