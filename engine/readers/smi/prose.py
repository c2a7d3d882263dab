"""What people tell of GPUs in words around a paste: GPUs by number, how many there should be."""

from __future__ import annotations

import re
from typing import Final

from engine.readers.smi.state import ranges

WORDS: Final = (
    r"(?:[0-9]{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen"
    r"|sixteen)"
)
_NUMBERS: Final = {
    word: i
    for i, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
         "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen")
    )
}  # fmt: skip
# "GPU3", "gpu #3", "GPUs 1-7", "GPUs 1, 2 and 5": indices, not addresses and not memory sizes.
_LIST: Final = r"\bGPUs? ?#?([0-9]{1,2}(?:(?: ?- ?| ?, ?(?:and )?| and | to )#?[0-9]{1,2}){0,15})\b"
_NAMED: Final = re.compile(
    rf"{_LIST}"
    r"(?![:.][0-9A-Fa-f]| ?(?:[KMG]i?B|%|W\b))",
    re.IGNORECASE,
)
_ALL: Final = 100
_ONE: Final = re.compile(r"([0-9]{1,2})(?: ?(?:-|to) ?#?([0-9]{1,2}))?")
_BOARD: Final = r"(?:GPUs?|(?:NVIDIA )?[A-Z]{1,3}[0-9]{1,4}s?)"
# "8 GPU node", "8x H100 box", "a node with 8 GPUs".
_NODE: Final = re.compile(
    rf"\b({WORDS}) ?[x-]? ?{_BOARD}\b[^.;:,]{{0,24}}?\b(?:node|box|server|host|machine|system)\b"
    rf"|\b(?:node|box|server|host|machine|system)\b (?:with|of|has) ({WORDS}) ?x? ?{_BOARD}\b",
    re.IGNORECASE,
)
_SEES: Final = r"(?:shows?|lists?|sees?|finds?|found|reports?|detects?|prints?|has|are|only|just)"
_OF: Final = re.compile(
    rf"\b{_SEES} (?:only |just )?({WORDS}) (?:out )?of (?:the |its |our )?({WORDS}) "
    rf"(?:\w{{2,12}} )?{_BOARD}\b"
    rf"|\b({WORDS}) (?:out )?of (?:the )?({WORDS}) {_BOARD} (?:are |is )?"
    r"(?:visible|seen|shown|listed|found|detected|there|left)\b"
    rf"|\b({WORDS}) {_BOARD} instead of (?:the )?({WORDS})\b",
    re.IGNORECASE,
)
_TELLS: Final = re.compile(
    r"\b(?:nvidia-smi(?: -L)?|the driver|torch\.cuda\.device_count\(\))"
    r" (?:now )?(?:only )?(?:shows?|lists?|sees?|finds?|reports?|prints?|detects?)"
    rf" (?:only |just )?({WORDS})\b(?! (?:error|process|warning|link|times?))",
    re.IGNORECASE,
)
# "GPUs 0-6 at 100 %", "GPU 7: 0%".
_LOAD: Final = re.compile(
    rf"{_LIST}[:,]?(?: (?:is|are|sits?|stays?|shows?|runs?|idles?|idle|busy|stuck))?"
    r" ?(?:(?:at|with|=) ?)?([0-9]{1,3})(?:\.[0-9]{1,2})? ?%(?! (?:fan|memory|of)\b)",
    re.IGNORECASE,
)
_READINGS: Final = ("fan", "power", "temp", "util", "memory", "clock", "perf")
_HUNG: Final = re.compile(
    r"\bnvidia-smi\b[^.;|]{0,24}?\b(?:hangs?|hung|freezes|frozen|is stuck|never (?:returns|comes)"
    r"|does(?: not|n't) (?:return|come back|finish))\b",
    re.IGNORECASE,
)
# A row of ps: user, pid, four numbers, terminal, a state that starts with D.
_ASLEEP: Final = re.compile(
    r"^\s{0,8}[\w.+-]{1,32}\s{1,12}([0-9]{1,9})\s{1,12}(?:[0-9.]{1,12}\s{1,12}){4}\S{1,12}\s{1,8}"
    r"D[<NLsl+]{0,4}\s{1,8}\S{1,8}\s{1,8}\S{1,12}\s{1,8}(?:\S{1,80}/)?nvidia-smi\b"
)


def named_gpus(text: str) -> list[int]:
    """Return indices of the GPUs that a text names, in order."""
    found: list[int] = []
    for match in _NAMED.finditer(text):
        found += _indices(match[1])
    return sorted(set(found))


def _indices(text: str) -> list[int]:
    found: list[int] = []
    for one in _ONE.finditer(text):
        first, last = int(one[1]), int(one[2] or one[1])
        found += range(first, min(last, first + 63) + 1)
    return found


def told_total(text: str) -> int | None:
    """Return how many GPUs a node is said to have."""
    found = _NODE.search(text)
    return word_number(found[1] or found[2]) if found else None


def told_missing(text: str) -> tuple[int, int] | None:
    """Return how many GPUs are seen and how many there should be, where the first are fewer."""
    of = _OF.search(text)
    seen: int | None
    if of is not None:
        seen, total = (word_number(of[i] or of[i + 2] or of[i + 4]) for i in (1, 2))
    else:
        tells = _TELLS.search(text)
        seen = word_number(tells[1]) if tells else None
        total = told_total(text) if tells else None
    if seen is None or total is None or seen >= total:
        return None
    return seen, total


def told_loads(text: str) -> list[tuple[list[int], int]]:
    """Return GPUs with the utilisation (percent) that a text tells of them."""
    found = [(_indices(match[1]), int(match[2])) for match in _LOAD.finditer(text)]
    return [(gpus, load) for gpus, load in found if load <= _ALL]


def told_unreadable(text: str) -> tuple[list[int], list[str]]:
    """Return GPUs that are said to show ``ERR!``, and for which readings."""
    clause = next((part for part in re.split(r"[;.]", text) if "ERR!" in part), "")
    low = clause.lower()
    return named_gpus(clause), [word for word in _READINGS if word in low]


def told_hung(text: str) -> bool:
    """Return whether a text says, or a row of ps shows, that nvidia-smi does not come back."""
    return _HUNG.search(text) is not None or _ASLEEP.match(text) is not None


def spoken(indices: list[int]) -> str:
    """Return GPUs as a sentence names them, by their indices."""
    return f"GPU {indices[0]}" if len(indices) == 1 else f"GPUs {ranges(indices)}"


def word_number(word: str | None) -> int | None:
    """Return the number that a word or digits stand for."""
    if word is None:
        return None
    low = word.lower()
    return int(low) if low.isascii() and low.isdigit() else _NUMBERS.get(low)
