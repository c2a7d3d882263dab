"""The words after a command, told apart: quoted words, plain words, and ``--options``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from engine.catalogue.nearest import did_you_mean
from engine.errors import UsageError

# A quotation mark inside a word is an apostrophe, or belongs to a selector's value.
_TOKEN = re.compile(
    r"(?:(?<![^\s=~,{(])\"[^\"\n]*\"|(?<![^\s=~,{(])'[^'\n]*'|(?<![^\s=~,{(])`[^`\n]*`|\S)+"
)
_OPTION = re.compile(r"--([A-Za-z][A-Za-z-]*)(?:=(.*))?", re.DOTALL)
_OPTION_FORMS = {
    "at": "for example: --at 03:12, or --at 2h ago",
    "window": "for example: --window 15m",
    "where": "for example: --where cluster=a",
}
_CLOCK = re.compile(r"\d{1,2}:\d{2}\S*")


@dataclass(frozen=True, slots=True)
class Words:
    """A command's words: ``text`` as typed, positional ``values``, options by name."""

    text: str
    values: tuple[str, ...]
    options: Mapping[str, str]

    @property
    def joined(self) -> str:
        """The positional words, joined by blanks."""
        return " ".join(self.values)


def split_words(command: str, text: str, taken: tuple[str, ...]) -> Words:
    """Tell options from positional words.

    Args:
        command: for errors.
        text: the words, as typed.
        taken: names of the options that the command takes.

    Raises:
        UsageError: another option, one without its value, or one given twice.
    """
    tokens = _TOKEN.findall(text)
    values: list[str] = []
    options: dict[str, str] = {}
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        option = _OPTION.fullmatch(token)
        if not option:
            values.append(_bare(token))
            continue
        name, value = option[1].lower(), option[2]
        if name not in taken:
            known = ", ".join(f"--{other}" for other in taken)
            otherwise = f"it takes {known}" if taken else "it takes none"
            hint = did_you_mean(name, [f"--{other}" for other in taken], otherwise=otherwise)
            raise UsageError(f"{command} has no option --{shown(name)} here", hint=hint)
        if value is None and at < len(tokens) and not tokens[at].startswith("--"):
            value = tokens[at]
            at += 1
        if name == "at" and value and at < len(tokens) and _goes_on(tokens[at]):
            value = f"{_bare(value)} {tokens[at]}"
            at += 1
        if not value or name in options:
            said = "is given twice" if value else "needs a value"
            raise UsageError(f"--{name} {said}", hint=_OPTION_FORMS[name])
        options[name] = _bare(value)
    return Words(text, tuple(values), options)


def _goes_on(token: str) -> bool:
    """Return whether a word belongs to a moment that was begun: "2h ago", "2026-01-31 03:12"."""
    return token.lower() == "ago" or bool(_CLOCK.fullmatch(token))


def _bare(token: str) -> str:
    quoted = len(token) > 1 and token[0] == token[-1] and token[0] in "\"'`"
    return token[1:-1] if quoted and token[0] not in token[1:-1] else token


def shown(text: str) -> str:
    """Return what an error repeats of a text."""
    return text if len(text) <= 40 else text[:37] + "..."
