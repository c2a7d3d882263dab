"""The words of a slash command: ``why node-3:5 --window 5m``, ``capture nsys node-3:5 10s``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.request import Json, Request
from bot.router.pasted import pasted_text
from bot.router.sentence import Said, read_sentence
from bot.router.slacktext import Message, read_message
from bot.router.targets import shortest
from bot.router.vocabulary import DEFAULT_DURATION_S, DEFAULT_PROFILER, PROFILERS
from bot.times import parse_moment, parse_span
from engine.catalogue.nearest import did_you_mean, nearest
from engine.errors import UsageError
from engine.topology import parse_target

COMMANDS = ("why", "sweep", "decode", "read", "capture", "rules", "help")

# A quotation mark inside a word is an apostrophe, or belongs to a selector's value.
_TOKEN = re.compile(
    r"(?:(?<![^\s=~,{(])\"[^\"\n]*\"|(?<![^\s=~,{(])'[^'\n]*'|(?<![^\s=~,{(])`[^`\n]*`|\S)+"
)
_OPTION = re.compile(r"--([A-Za-z][A-Za-z-]*)(?:=(.*))?", re.DOTALL)
_MATCHER = re.compile(r"\{?\s*[A-Za-z_]\w*\s*(?:=~|!~|!=|=).*", re.DOTALL | re.ASCII)
_CLOCK = re.compile(r"\d{1,2}:\d{2}\S*")
_LENGTH = re.compile(r"(?:for\s+)?(\d+(?:\.\d+)?\s*[a-z]+)", re.IGNORECASE)

# Only to see whether a text is a moment; what it means is reckoned when it is asked about.
_SOME_NOW = 1_750_000_000.0
_CAPTURE_FORM = "write it like: capture nsys node-3:5 10s"
_CAPTURE_ACTIONS = {"run", "plan"}
_ELSEWHERE = {"list", "show", "cancel"}
_RULE_ACTIONS = ("list", "show", "test", "lint")


@dataclass(frozen=True, slots=True)
class _Words:
    """A command's words: ``text`` as typed, positional ``values``, options by name."""

    text: str
    values: tuple[str, ...]
    options: Mapping[str, str]

    @property
    def joined(self) -> str:
        return " ".join(self.values)


def parse_words(words: str) -> Request:
    """Read the words of a slash command; nothing at all asks for help.

    Plain sentences are understood too where no command is near ("is node-3 ok?").

    Args:
        words: what follows ``/gpu``, as Slack sends it.

    Raises:
        UsageError: an unknown command (with the nearest one), a missing or unreadable argument, an
            unknown option.
    """
    message = read_message(words)
    said = read_words(message)
    return Request(said.command, said.args, message.raw)


def read_words(message: Message) -> Said:
    """Read a message as the words of a command.

    Raises:
        UsageError: as `parse_words`.
    """
    text = message.prose.removeprefix("/gpu ").removeprefix("gpuwhy ").strip()
    if text in {"", "?", "/gpu", "gpuwhy"} and not message.fences and not message.quoted:
        return Said("help", {})
    first = text.split(maxsplit=1)[0] if text else ""
    rest = text[len(first) :].strip()
    command = first.strip("`:*_").lower()
    if command == "read":
        return Said("read", {"text": _paste(message)})
    if command not in _PARSERS:
        return _unknown(command, text, message)
    taken, read = _PARSERS[command]
    return Said(command, read(_split(command, rest, taken)))


def _split(command: str, text: str, taken: tuple[str, ...]) -> _Words:
    """Tell options from positional words."""
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
            hint = did_you_mean(name, taken, otherwise=otherwise)
            raise UsageError(f"{command} has no option --{_shown(name)} here", hint=hint)
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
    return _Words(text, tuple(values), options)


def _goes_on(token: str) -> bool:
    """Return whether a word belongs to a moment that was begun: "2h ago", "2026-01-31 03:12"."""
    return token.lower() == "ago" or bool(_CLOCK.fullmatch(token))


def _bare(token: str) -> str:
    quoted = len(token) > 1 and token[0] == token[-1] and token[0] in "\"'`"
    return token[1:-1] if quoted and token[0] not in token[1:-1] else token


def _why(words: _Words) -> dict[str, Json]:
    if not words.values:
        raise UsageError("why needs a target", hint="for example: why node-3:5")
    said = read_sentence(f"why {words.joined}") if len(words.values) > 1 else None
    if said and said.command == "why":
        return {**said.args, **_period(words.options)}
    target = shortest(parse_target(words.joined.rstrip("?.")))
    return {"target": target, **_period(words.options)}


def _sweep(words: _Words) -> dict[str, Json]:
    period = _period(words.options)
    values = [value for value in words.values if value.lower() != "where"]
    matchers = [value.strip(",") for value in values if _MATCHER.fullmatch(value)]
    if len(matchers) < len(values):
        said = read_sentence(f"sweep {words.text}")
        if said is None or said.command != "sweep":
            odd = next(value for value in values if not _MATCHER.fullmatch(value))
            raise UsageError(
                f"cannot tell what {_shown(odd)!r} selects",
                hint='write labels like: sweep cluster="a", or: why TARGET for one thing',
            )
        return {**said.args, **period}
    if "where" in words.options:
        matchers.append(words.options["where"])
    return {**({"where": ",".join(matchers)} if matchers else {}), **period}


def _decode(words: _Words) -> dict[str, Json]:
    text = " ".join(value.strip("`") for value in words.values).rstrip("?").strip()
    if not text:
        raise UsageError("decode needs something to decode", hint="for example: decode 0x48")
    return {"text": text}


def _capture(words: _Words) -> dict[str, Json]:
    values = list(words.values)
    if values and values[0].lower() in _ELSEWHERE and len(values) < 3:
        raise UsageError(f"capture {values[0].lower()} is not offered here", hint=_CAPTURE_FORM)
    if values and values[0].lower() in _CAPTURE_ACTIONS:
        values = values[1:]
    profiler = PROFILERS.get(values[0].lower(), "") if values else ""
    if profiler:
        values = values[1:]
    duration, values = _duration(values)
    if not values:
        raise UsageError("capture needs a target", hint=_CAPTURE_FORM)
    if not profiler and len(values) > 1:
        _no_profiler(values)
    return {
        "profiler": profiler or DEFAULT_PROFILER,
        "target": _capture_target(values),
        "duration_s": duration,
    }


def _capture_target(values: list[str]) -> str:
    words = [word for word in values if word.lower() not in {"of", "on", "for"} or len(values) > 2]
    target = shortest(parse_target(" ".join(words)))
    if target == "fleet":
        raise UsageError("a capture is of one target, not of the fleet", hint=_CAPTURE_FORM)
    return target


def _no_profiler(values: list[str]) -> None:
    """Complain of a first word that is neither a profiler nor part of a target's name."""
    try:
        parse_target(" ".join(values))
    except UsageError:
        hint = did_you_mean(values[0], PROFILERS, otherwise=_CAPTURE_FORM)
        raise UsageError(f"no profiler {_shown(values[0])!r}", hint=hint) from None


def _duration(values: list[str]) -> tuple[float, list[str]]:
    """Take a duration (s) off the end of a capture's words."""
    for count in (3, 2, 1):
        found = _LENGTH.fullmatch(" ".join(values[-count:])) if len(values) >= count else None
        if found:
            return parse_span(found[1]), values[:-count]
    if len(values) > 1 and values[-1].isdecimal() and not values[-2].lower().startswith("gpu"):
        said = f"{_shown(values[-1])} has no unit"
        raise UsageError(said, hint=f"write it with one, such as {values[-1][:9]}s")
    return DEFAULT_DURATION_S, values


def _rules(words: _Words) -> dict[str, Json]:
    if not words.values:
        return {"action": "list"}
    action, *names = words.values
    if action.lower() not in _RULE_ACTIONS:
        action, names = "show", list(words.values)
    if len(names) > 1 or (names and action.lower() in {"list", "lint"}):
        raise UsageError(f"too many words after rules {_shown(action)}", hint="rules show NAME")
    if not names and action.lower() == "show":
        raise UsageError("rules show needs a name", hint="for example: rules show power_brake")
    return {"action": action.lower(), **({"name": names[0]} if names else {})}


def _help(words: _Words) -> dict[str, Json]:
    if not words.values:
        return {}
    topic = words.values[0].lower()
    if topic not in COMMANDS:
        raise _no_command(topic)
    return {"topic": topic}


def _period(options: Mapping[str, str]) -> dict[str, Json]:
    """Check ``--at`` and ``--window``; they stay text, since "2h ago" counts from the asking.

    Raises:
        UsageError: one cannot be read.
    """
    if "at" in options:
        parse_moment(options["at"], now=_SOME_NOW)
    if "window" in options:
        parse_span(options["window"])
    return {name: options[name] for name in ("at", "window") if name in options}


def _paste(message: Message) -> str:
    after = re.split(r"\bread\b:?", message.raw, maxsplit=1, flags=re.IGNORECASE)[-1]
    text = ("\n".join(message.fences) or after).strip()
    if not text:
        raise UsageError(
            "read needs text", hint="paste a log, nvidia-smi output or metrics after it"
        )
    return text


def _unknown(command: str, text: str, message: Message) -> Said:
    """Read words that begin with no command: pasted output, or a sentence."""
    paste = pasted_text(message)
    if paste is not None:
        return Said("read", {"text": paste})
    if not nearest(command, COMMANDS, 1):
        said = read_sentence(text)
        if said is not None:
            return said
    raise _no_command(command)


def _no_command(word: str) -> UsageError:
    hint = did_you_mean(word, COMMANDS, otherwise=f"use one of {', '.join(COMMANDS)}")
    return UsageError(f"no command {_shown(word)!r}", hint=hint, code="unknown_command")


def _shown(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


_OPTION_FORMS = {
    "at": "for example: --at 03:12, or --at 2h ago",
    "window": "for example: --window 15m",
    "where": "for example: --where cluster=a",
}
_PARSERS: dict[str, tuple[tuple[str, ...], Callable[[_Words], dict[str, Json]]]] = {
    "why": (("at", "window"), _why),
    "sweep": (("where", "at", "window"), _sweep),
    "decode": ((), _decode),
    "capture": ((), _capture),
    "rules": ((), _rules),
    "help": ((), _help),
}
