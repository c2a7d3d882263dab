"""Words as they are typed: shortened, run together, mistyped."""

from __future__ import annotations

from functools import lru_cache

from rapidfuzz import process
from rapidfuzz.distance import OSA

from bot.router import vocabulary as v
from bot.router.profilers import PROFILERS
from bot.router.spans import word_set

CONTRACTIONS = {
    "whats": "what is",
    "wats": "what is",
    "what's": "what is",
    "hows": "how is",
    "how's": "how is",
    "whos": "who is",
    "who's": "who is",
    "wheres": "where is",
    "where's": "where is",
    "theres": "there is",
    "there's": "there is",
    "it's": "it is",
    "that's": "that is",
    "something's": "something is",
    "anything's": "anything is",
    "everything's": "everything is",
    "why's": "why is",
    "whys": "why is",
    "i'm": "i am",
    "im": "i am",
    "i'd": "i would",
    "we'd": "we would",
    "i've": "i have",
    "we've": "we have",
    "we're": "we are",
    "you're": "you are",
    "they're": "they are",
    "let's": "lets",
    "u": "you",
    "r": "are",
    "ur": "your",
    "wtf": "why",
    "dont": "do not",
    "don't": "do not",
    "doesnt": "does not",
    "doesn't": "does not",
    "didnt": "did not",
    "didn't": "did not",
    "isnt": "is not",
    "isn't": "is not",
    "arent": "are not",
    "aren't": "are not",
    "wasnt": "was not",
    "wasn't": "was not",
    "cant": "can not",
    "can't": "can not",
    "cannot": "can not",
    "wont": "will not",
    "won't": "will not",
    "shouldn't": "should not",
    "couldn't": "could not",
    "hasn't": "has not",
    "haven't": "have not",
    "needn't": "need not",
    "gimme": "give me",
    "wanna": "want to",
    "gonna": "going to",
    "nvm": "never mind",
    "nevermind": "never mind",
}

# Words near those of the lists that are meant as they stand.
_MEANT = word_set(
    "blow brother buy captured captures capturing cheek chuck coder codes crack decoder flow glow",
    "heal helped helper house kick light memo mode modes mouse paper pick place plate price prices",
    "profiled profiler profiles profits race recorded recorder score shows sink skate sleep slot",
    "snow sound state stick stock store sweeps sweet swept traced traces tracing track treble",
    "trick way wealth wealthy words",
)
KNOWN = (
    frozenset(PROFILERS)
    | CONTRACTIONS.keys()
    | (
        v.COMMON
        | v.FLEET
        | v.SWEEP
        | v.CAPTURE
        | v.RECORDING
        | v.SEVERITY
        | v.SETTLED
        | v.REPORTED
        | _MEANT
    )
)
_GUESSED = sorted(
    v.COMMON | v.FLEET | v.SWEEP | v.CAPTURE | v.RECORDING | v.SEVERITY | frozenset({"nsys"}),
    key=lambda w: (len(w), w),
)
_LONG, _VERY_LONG = 5, 8


@lru_cache(maxsize=4096)
def meant(word: str) -> str:
    """Return what a word was meant to be: itself if it is known or like no other.

    In a short word two letters may be swapped, in longer ones one is too many, too few or wrong, in
    long ones two are.
    """
    if word in KNOWN or not word.isalpha() or not 3 <= len(word) <= 20:
        return word
    if len(word) < _LONG:
        swapped = [known for known in _GUESSED if sorted(known) == sorted(word)]
        return next((known for known in swapped if OSA.distance(word, known) == 1), word)
    slips = 1 if len(word) < _VERY_LONG else 2
    found = process.extractOne(word, _GUESSED, scorer=OSA.distance, score_cutoff=slips)
    return found[0] if found and len(found[0]) >= _LONG - 1 else word
