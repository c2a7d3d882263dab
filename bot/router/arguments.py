"""The arguments of each command, as they are typed after it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from bot.request import Json
from bot.router.options import Words, shown
from bot.router.profilers import DEFAULT_DURATION_S, DEFAULT_PROFILER, PROFILERS
from bot.router.sentence import read_sentence
from bot.router.spans import pattern
from bot.router.targets import shortest
from bot.times import parse_moment, parse_span
from engine.catalogue.nearest import did_you_mean
from engine.errors import UsageError
from engine.topology import parse_target

COMMANDS = (
    "why",
    "sweep",
    "decode",
    "ask",
    "read",
    "calc",
    "kb",
    "export",
    "capture",
    "rules",
    "help",
)

Parser = Callable[[Words], dict[str, Json]]

_MATCHER = re.compile(r"\{?\s*[A-Za-z_]\w*\s*(?:=~|!~|!=|=).*", re.DOTALL | re.ASCII)
_LENGTH = pattern(r"(?:for\s+)?((?:\d+(?:\.\d+)?[a-z]+)+|\d+(?:\.\d+)?\s+[a-z]+)")

# Only to see whether a text is a moment; what it means is reckoned when it is asked about.
_SOME_NOW = 1_750_000_000.0
_CAPTURE_FORM = "write it like: capture nsys node-3:5 10s"
# Every capture is a plan first, whichever is asked for; the others need the store.
_CAPTURE_ACTIONS = frozenset({"run", "plan"})
_ELSEWHERE = frozenset({"list", "show", "cancel"})
_RULE_ACTIONS = frozenset({"list", "show", "test", "lint", "why-not"})
_KB_ACTIONS = frozenset({"list", "show", "search", "lint"})


def no_command(word: str) -> UsageError:
    """Return the error for an unknown command, with the nearest one."""
    hint = did_you_mean(word, COMMANDS, otherwise=f"use one of {', '.join(COMMANDS)}")
    return UsageError(f"no command {shown(word)!r}", hint=hint, code="unknown_command")


def _why(words: Words) -> dict[str, Json]:
    if not words.values:
        raise UsageError("why needs a target", hint="for example: why node-3:5")
    kept = " ".join(f'"{value}"' if " " in value else value for value in words.values)
    said = read_sentence(f"why {kept}") if len(words.values) > 1 else None
    if said and said.command == "why":
        return {**said.args, **_period(words.options)}
    target = shortest(parse_target(words.joined.rstrip("?.")))
    return {"target": target, **_period(words.options)}


def _sweep(words: Words) -> dict[str, Json]:
    period = _period(words.options)
    values = [value for value in words.values if value.lower() != "where"]
    matchers = [value.strip(",") for value in values if _MATCHER.fullmatch(value)]
    if len(matchers) < len(values):
        said = read_sentence(f"sweep {words.text}")
        if said is None or said.command != "sweep":
            odd = next(value for value in values if not _MATCHER.fullmatch(value))
            raise UsageError(
                f"cannot tell what {shown(odd)!r} selects",
                hint='write labels like: sweep cluster="a", or: why TARGET for one thing',
            )
        return {**said.args, **period}
    if "where" in words.options:
        matchers.append(words.options["where"])
    return {**({"where": ",".join(matchers)} if matchers else {}), **period}


def _decode(words: Words) -> dict[str, Json]:
    text = " ".join(value.strip("`") for value in words.values).rstrip("?").strip()
    if not text:
        raise UsageError("decode needs something to decode", hint="for example: decode 0x48")
    return {"text": text}


def _capture(words: Words) -> dict[str, Json]:
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
        raise UsageError(f"no profiler {shown(values[0])!r}", hint=hint) from None


def _duration(values: list[str]) -> tuple[float, list[str]]:
    """Take a duration (s) off the end of a capture's words."""
    for count in (3, 2, 1):
        found = _LENGTH.fullmatch(" ".join(values[-count:])) if len(values) >= count else None
        if found:
            return parse_span(found[1]), values[:-count]
    if len(values) > 1 and values[-1].isdecimal() and not values[-2].lower().startswith("gpu"):
        said = f"{shown(values[-1])} has no unit"
        raise UsageError(said, hint=f"write it with one, such as {values[-1][:9]}s")
    return DEFAULT_DURATION_S, values


def _rules(words: Words) -> dict[str, Json]:
    if not words.values:
        return {"action": "list"}
    action, *names = words.values
    if action.lower() not in _RULE_ACTIONS:
        action, names = "show", list(words.values)
    if action.lower() == "why-not":
        return _why_not(names, words.options)
    if words.options:
        option = next(iter(words.options))
        raise UsageError(f"rules {shown(action)} has no option --{option}", hint="rules show NAME")
    if len(names) > 1 or (names and action.lower() in {"list", "lint"}):
        raise UsageError(f"too many words after rules {shown(action)}", hint="rules show NAME")
    if not names and action.lower() == "show":
        raise UsageError("rules show needs a name", hint="for example: rules show power_brake")
    return {"action": action.lower(), **({"name": names[0]} if names else {})}


def _why_not(names: list[str], options: Mapping[str, str]) -> dict[str, Json]:
    if len(names) < 2:
        hint = "for example: rules why-not power_brake node-3:5"
        raise UsageError("rules why-not needs a rule and a target", hint=hint)
    target = shortest(parse_target(" ".join(names[1:])))
    return {"action": "why-not", "name": names[0], "target": target, **_period(options)}


def _ask(words: Words) -> dict[str, Json]:
    if not words.values:
        raise UsageError("ask needs a question", hint="for example: ask which tool shows idle gaps")
    after = words.options.get("after")
    return {"text": words.text, **({"after": after} if after else {})}


def _calc(words: Words) -> dict[str, Json]:
    return {"words": [value.strip("`") for value in words.values]}


def _kb(words: Words) -> dict[str, Json]:
    if not words.values:
        return {"action": "list"}
    action, *rest = words.values
    if action.lower() not in _KB_ACTIONS:
        action, rest = "search", list(words.values)
    if not rest and action.lower() in {"show", "search"}:
        raise UsageError(f"kb {action} needs more", hint="for example: kb show xid/79")
    return {"action": action.lower(), **({"text": " ".join(rest)} if rest else {})}


def _export(words: Words) -> dict[str, Json]:
    if len(words.values) != 1:
        raise UsageError("export needs one format", hint="for example: export prometheus")
    base = words.options.get("runbooks")
    return {"format": words.values[0].lower(), **({"runbooks": base} if base else {})}


def _help(words: Words) -> dict[str, Json]:
    if not words.values:
        return {}
    topic = words.values[0].lower()
    if topic not in COMMANDS:
        raise no_command(topic)
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


# Names of the options that a command takes, and what reads its words; ``read`` takes text whole.
PARSERS: dict[str, tuple[tuple[str, ...], Parser]] = {
    "why": (("at", "window"), _why),
    "sweep": (("where", "at", "window"), _sweep),
    "decode": ((), _decode),
    "ask": (("after",), _ask),
    "calc": ((), _calc),
    "kb": ((), _kb),
    "export": (("runbooks",), _export),
    "capture": ((), _capture),
    "rules": (("at", "window"), _rules),
    "help": ((), _help),
}
