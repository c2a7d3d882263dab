"""The reference: one Markdown page a concern, made from the knowledge base.

``gpuwhy kb reference`` writes it into ``docs/reference``; a test holds it against the YAML. Alerts
link into it, so the anchor of an entry is its id and does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from engine.catalogue.types import Catalogue
from engine.lookup.card import Card
from engine.lookup.tables import attribute, card
from engine.units import number

Entry = Mapping[str, Any]

MADE = "<!-- Made by `gpuwhy kb reference` from knowledge/; changes here are lost. -->"
# Tables whose rows are short: one line each.
_ROWS = frozenset(
    (
        "dcgm_errors",
        "cuda_errors",
        "dcgm_fields",
        "kernel_readings",
        "kernel_verdicts",
        "stack_frames",
        "nvlink4_registers",
        "nvlink5",
        "nvlink5_fields",
        "nvlink5_reasons",
        "service_readings",
        "signals",
        "sxid",
        "taxonomy",
        "xid",
        "xid154_actions",
        "xid_buckets",
        "xid_follow_on",
        "xid_priors",
    )
)
# Concerns that serve the product itself.
_NO_PAGE = frozenset(("concerns", "vocabulary"))


def pages(catalogue: Catalogue) -> dict[str, str]:
    """Return the pages of the reference by file name, the table of contents as ``README.md``."""
    concerns = [c for c in sorted(catalogue.entries) if c not in _NO_PAGE]
    made = {f"{concern}.md": _page(concern, catalogue) for concern in concerns}
    return {"README.md": _contents(concerns, catalogue), **made}


def _contents(concerns: Sequence[str], catalogue: Catalogue) -> str:
    groups: dict[str, list[str]] = {}
    for concern in concerns:
        about = _about(concern, catalogue)
        row = f"- [{_plain(about['title'])}]({concern}.md): {_plain(_first(about['text']))}"
        groups.setdefault(about.get("group", "Other"), []).append(row)
    parts = [MADE, "# Reference", "Everything that the knowledge base holds, one page a concern."]
    for group, rows in sorted(groups.items()):
        parts += [f"## {group}", "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def _page(concern: str, catalogue: Catalogue) -> str:
    about = _about(concern, catalogue)
    parts = [MADE, f"# {_plain(about['title'])}", _plain(about["text"])]
    entries = catalogue.entries[concern]
    if concern in _ROWS:
        parts.append(_table(concern, entries, catalogue))
        parts += list(_errata_of_rows(entries))
    else:
        for key in entries:
            found = card(f"{concern}/{key}", catalogue)
            assert found is not None, "the key comes from the catalogue"
            parts += list(_entry(key, found, catalogue))
    return "\n\n".join(part for part in parts if part) + "\n"


def _about(concern: str, catalogue: Catalogue) -> Entry:
    blank = {"title": concern.replace("_", " "), "text": "", "group": "Other"}
    return catalogue.entries.get("concerns", {}).get(concern, blank)


def _entry(key: str, found: Card, catalogue: Catalogue) -> Iterator[str]:
    raw = found.raw
    yield f'<a id="{_anchor(key)}"></a>'
    yield f"## {_plain(found.title)}"
    yield _plain(found.text)
    for name, say in (("caution", "Caution"), ("instead", "Instead"), ("versions", "Versions")):
        if raw.get(name):
            yield f"**{say}:** {_plain(str(raw[name]))}"
    for command in found.commands:
        needs = [f"needs {command.privilege}"] if command.privilege else []
        needs += [f"overhead: {command.overhead}"] if command.overhead else []
        needs += [command.versions] if command.versions else []
        needs += [f"{command.risk} work"] if command.risk != "none" else []
        about = f" ({'; '.join(needs)})" if needs else ""
        yield f"{_plain(command.does + about)}:\n\n{_code(command.line(), 'sh')}"
    yield from _structured(found)
    if found.names:
        yield "**Also:** " + ", ".join(f"`{name}`" for name in found.names)
    for erratum in raw.get("errata") or ():
        yield f"> **Often told otherwise.** {_told(erratum)}"
    if raw.get("see"):
        yield "**See:** " + ", ".join(_link(link, catalogue) for link in raw["see"])
    yield f"_Source ({raw.get('status', 'single')}): {_plain('; '.join(found.sources))}_"


def _structured(found: Card) -> Iterator[str]:
    raw = found.raw
    rows: list[tuple[str, ...]]
    if found.metrics:
        rows = [(f"`{m.name}`", m.unit, m.healthy or "", m.problem or "") for m in found.metrics]
        yield _rows(("metric", "unit", "healthy", "problem"), rows)
    if raw.get("steps"):
        yield "\n".join(f"{n}. {_plain(step)}" for n, step in enumerate(raw["steps"], 1))
    if raw.get("flags"):
        keys = ("flag", "does", "default", "since", "until", "replaced_by")
        rows = [
            (f"`{flag['flag']}`", *(str(flag.get(key) or "") for key in keys[1:]))
            for flag in raw["flags"]
        ]
        yield _rows(tuple(key.replace("_", " ") for key in keys), rows)
    if raw.get("value") is not None:
        origin = " (site default)" if raw.get("site_default") else ""
        yield f"**Limit:** {_word(raw['value'])} {raw.get('unit', '')}".rstrip() + origin
    if raw.get("values"):
        rows = [
            (v["name"], f"{_word(v['value'])} {v.get('unit') or ''}".strip(), v.get("note") or "")
            for v in raw["values"]
        ]
        yield _rows(("value", "is", "note"), rows)
    if raw.get("facts"):
        yield _rows(
            ("fact", "value"),
            [(name.replace("_", " "), _word(value)) for name, value in raw["facts"].items()],
        )
    if raw.get("attrs"):
        yield "\n".join(f"- {_plain(attribute(*pair))}" for pair in raw["attrs"].items())
    for query in raw.get("queries") or ():
        about = [query["unit"]] if query.get("unit") else []
        about += [f"needs {query['needs']}"] if query.get("needs") else []
        said = query["shows"] + (f" ({'; '.join(about)})" if about else "")
        yield f"{_plain(said)}:\n\n{_code(query['promql'], 'promql')}"
    if raw.get("expr"):
        yield f"Fires after {raw['for']} at severity {raw['severity']}:\n\n" + _code(
            raw["expr"], "promql"
        )
    for snippet in raw.get("code") or ():
        yield f"{_plain(snippet['does'])}:\n\n{_code(snippet['text'], snippet['language'])}"


_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "cuda_errors": ("id", "number", "messages", "severity", "meaning", "action"),
    "dcgm_errors": ("id", "name", "verdict", "meaning", "action"),
    "kernel_readings": ("id", "title", "unit", "names", "labels"),
    "stack_frames": ("id", "match", "role", "severity", "says", "action"),
    "kernel_verdicts": ("id", "group", "when", "severity", "says", "action"),
    "dcgm_fields": ("id", "short", "name", "unit", "since", "default_exported", "meaning"),
    "signals": ("id", "title", "unit", "scope", "spellings"),
    "sxid": ("id", "title", "severity", "action"),
    "taxonomy": ("id", "class", "scope", "title", "is"),
    "xid": ("id", "title", "severity", "class", "action"),
}


def _table(concern: str, entries: Mapping[str, Entry], catalogue: Catalogue) -> str:
    del catalogue
    columns = _COLUMNS.get(concern)
    if columns is None:
        keys = {key for entry in entries.values() for key in entry} - {"source", "status", "errata"}
        columns = ("id", "title", *sorted(keys - {"id", "title"}))
    rows = []
    for key, entry in entries.items():
        first = f'<a id="{_anchor(key)}"></a>{_plain(str(entry["id"]))}'
        rows.append((first, *(_cell(entry.get(column)) for column in columns[1:])))
    return _rows(tuple(column.replace("_", " ") for column in columns), rows, escape=False)


def _errata_of_rows(entries: Mapping[str, Entry]) -> Iterator[str]:
    told = [(key, erratum) for key, e in entries.items() for erratum in e.get("errata") or ()]
    if told:
        yield "## Often told otherwise"
        yield "\n".join(f"- `{key}`: {_told(erratum)}" for key, erratum in told)


def _told(erratum: Mapping[str, str]) -> str:
    """Return what is told wrongly, and then what holds."""
    claim, right, why = (_plain(erratum[key]) for key in ("claim", "right", "why"))
    return f"{claim} In fact: {right} {why}"


def _cell(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        value = [one.get("name", one) for one in value]
    return _plain("" if value is None else _word(value)).replace("|", "\\|")


def _rows(head: tuple[str, ...], rows: Sequence[Sequence[str]], *, escape: bool = True) -> str:
    clean: Callable[[str], str] = (
        (lambda text: text if text.startswith("`") else _plain(text)) if escape else str
    )
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        cells = (clean(str(cell)).replace("|", "\\|") if escape else cell for cell in row)
        lines.append("| " + " | ".join(" ".join(cell.split()) for cell in cells) + " |")
    return "\n".join(lines)


def _code(text: str, language: str) -> str:
    fence = "````" if "```" in text else "```"
    return f"{fence}{language}\n{text.strip()}\n{fence}"


def _link(key: str, catalogue: Catalogue) -> str:
    concern, _, name = key.partition("/")
    title = catalogue.entries[concern][name]["title"]
    return f"[{_plain(title)}]({concern}.md#{_anchor(name)})"


def _anchor(key: str) -> str:
    return key.replace("/", "-").replace(" ", "-")


def _first(text: str) -> str:
    return text.split(". ", maxsplit=1)[0].rstrip(".") + "."


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is, inline code apart."""
    text = " ".join(text.split())
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _escaped(text)
    return "`".join(part if n % 2 else _escaped(part) for n, part in enumerate(parts))


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[")


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list):
        return ", ".join(_word(item) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_word(item)}" for key, item in value.items())
    return str(value)
