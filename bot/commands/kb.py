"""``kb``: list, show, search and lint the knowledge base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bot.answer import (
    Align,
    Answer,
    Bullet,
    Bullets,
    Heading,
    Level,
    Table,
    Text,
    code,
    line,
    muted,
    strong,
)
from bot.commands import entry
from bot.commands.rules import lint_answer
from bot.phrases import count
from engine.catalogue.nearest import did_you_mean, nearest
from engine.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from engine.catalogue.types import Catalogue

_SEARCHED = 10
_LONGEST = 500
_SHOWN = 80


def list_entries(catalogue: Catalogue, concern: str = "") -> Answer:
    """Return the concerns with how many entries each has, or the entries of one.

    Raises:
        UsageError: there is no such concern.
    """
    if concern:
        return _entries(catalogue, concern)
    about = catalogue.entries.get("concerns", {})
    rows = [
        (name, len(entries), about.get(name, {}).get("title", ""))
        for name, entries in sorted(catalogue.entries.items())
    ]
    total = sum(row[1] for row in rows)
    return Answer(
        title=line(strong(f"{count(total, 'entry', 'entries')} in {count(len(rows), 'concern')}")),
        blocks=(
            Table(
                ("concern", "entries", "about"),
                tuple((line(code(name)), line(str(n)), line(title)) for name, n, title in rows),
                (Align.LEFT, Align.RIGHT, Align.LEFT),
            ),
            Text(line("One concern: ", code("gpuwhy kb list CONCERN"))),
        ),
        data={
            "schema": "gpuwhy/kb-list/1",
            "concerns": [{"id": name, "entries": n, "title": title} for name, n, title in rows],
        },
    )


def _entries(catalogue: Catalogue, concern: str) -> Answer:
    found = catalogue.entries.get(concern)
    if found is None:
        hint = did_you_mean(concern, catalogue.entries, otherwise="gpuwhy kb list names them all")
        raise UsageError(f"no concern {concern[:_SHOWN]!r}", hint=hint, code="unknown_concern")
    rows = [
        (f"{concern}/{key}", one.get("status", ""), one.get("title", key))
        for key, one in found.items()
    ]
    title = catalogue.entries.get("concerns", {}).get(concern, {}).get("title", concern)
    return Answer(
        title=line(strong(title), muted(f", {count(len(rows), 'entry', 'entries')}")),
        blocks=(
            Table(
                ("id", "status", "title"),
                tuple((line(code(key)), line(status), line(said)) for key, status, said in rows),
                (Align.LEFT, Align.LEFT, Align.LEFT),
            ),
        ),
        data={
            "schema": "gpuwhy/kb-list/1",
            "concern": concern,
            "entries": [dict(zip(("id", "status", "title"), row, strict=True)) for row in rows],
        },
    )


def show(key: str, catalogue: Catalogue) -> Answer:
    """Return one entry in full, by ``CONCERN/ID``, or by its id alone where that is unique.

    Raises:
        UsageError: there is no such entry, or several have the id.
    """
    from engine.lookup.ask import to_answer  # noqa: PLC0415 - numpy
    from engine.lookup.tables import card  # noqa: PLC0415

    full = _full_key(key, catalogue)
    found = card(full, catalogue)
    assert found is not None, "the key was looked up"
    answer = to_answer(found, 1.0)
    concern, _, name = full.partition("/")
    raw = catalogue.entries[concern][name]
    see = raw.get("see") or ()
    return Answer(
        title=line(strong(found.title), " (", code(full), ")"),
        blocks=(
            *entry.blocks(answer, found),
            *(
                (Heading(line("See also"), 2), Bullets(tuple(_link(k, catalogue) for k in see)))
                if see
                else ()
            ),
            Text(line(muted(f"Defined in {catalogue.origins[full]}"))),
        ),
        data={
            "schema": "gpuwhy/kb-show/1",
            "concern": concern,
            "file": catalogue.origins[full],
            "entry": _jsonable(raw),
            "commands": list(answer.commands),
        },
    )


def search(text: str, catalogue: Catalogue) -> Answer:
    """Return the entries that words find, best first.

    Raises:
        UsageError: nothing was given.
    """
    from engine.lookup.ask import library  # noqa: PLC0415 - numpy

    if not text.strip():
        raise UsageError(
            "nothing to search for", hint="for example: gpuwhy kb search row remapping"
        )
    if len(text) > _LONGEST:
        raise UsageError(f"more than {_LONGEST} characters to search for", hint="give a few words")
    hits = library(catalogue).index.search(text, _SEARCHED)
    return Answer(
        title=line(strong(count(len(hits), "entry", "entries")), f" for {text.strip()}"),
        blocks=(
            Table(
                ("id", "score", "title"),
                tuple(
                    (line(code(h.card.key)), line(f"{h.score:.2f}"), line(h.card.title))
                    for h in hits
                ),
                (Align.LEFT, Align.RIGHT, Align.LEFT),
            ),
        )
        if hits
        else (),
        data={
            "schema": "gpuwhy/kb-search/1",
            "query": text.strip(),
            "entries": [
                {"id": h.card.key, "score": round(h.score, 3), "title": h.card.title} for h in hits
            ],
        },
        level=Level.CLEAR if hits else Level.UNKNOWN,
    )


def lint(overlays: Sequence[Path]) -> Answer:
    """Check knowledge, the site's overlays included; every problem is listed.

    Raises:
        UsageError: an overlay is no such folder.
    """
    from engine.catalogue.lint import lint as find_problems  # noqa: PLC0415 - yaml, pydantic
    from engine.catalogue.lint_rules import RULE_CHECKS  # noqa: PLC0415

    of_rules = {check.name for check in RULE_CHECKS}
    problems = [problem for problem in find_problems(overlays) if problem.check not in of_rules]
    return lint_answer(problems, what="knowledge", schema="gpuwhy/kb-lint/1")


def reference(folder: Path, catalogue: Catalogue) -> Answer:
    """Write the reference pages into a folder; pages of concerns that are gone are removed.

    Raises:
        UsageError: the folder cannot be written.
    """
    from engine.lookup.pages import MADE, pages  # noqa: PLC0415 - only this command needs it

    made = pages(catalogue)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Only what was made before is replaced or removed: there may be pages of somebody's own.
        there = {path: path.read_text("utf-8", "replace") for path in sorted(folder.glob("*.md"))}
        own = [path.name for path, text in there.items() if not text.startswith(MADE)]
        if taken := sorted(made.keys() & set(own)):
            said = f"{folder / taken[0]} was not made by this command"
            raise UsageError(said, hint="name another folder, or move the file away")
        for path in there:
            if path.name not in made and path.name not in own:
                path.unlink()
        for name, text in made.items():
            (folder / name).write_text(text, "utf-8")
    except OSError as error:
        said = f"cannot write {error.filename or folder}: {error.strerror or error}"
        raise UsageError(said, hint="name a folder that you may write") from error
    return Answer(
        title=line(strong(count(len(made), "page")), f" written to {folder}"),
        blocks=(),
        data={"schema": "gpuwhy/kb-reference/1", "folder": str(folder), "pages": sorted(made)},
    )


def _full_key(key: str, catalogue: Catalogue) -> str:
    key = key.strip()
    concern, slash, name = key.partition("/")
    if slash and name in catalogue.entries.get(concern, {}):
        return key
    if not slash:
        having = [c for c, entries in catalogue.entries.items() if key in entries]
        if len(having) == 1:
            return f"{having[0]}/{key}"
        if having:
            options = ", ".join(f"{c}/{key}" for c in sorted(having))
            raise UsageError(f"several entries are called {key!r}", hint=f"give one of {options}")
    known = [f"{c}/{k}" for c, entries in catalogue.entries.items() for k in entries]
    best = nearest(key, known, 3) or nearest(name or key, (k.partition("/")[2] for k in known), 1)
    hint = f"did you mean {' or '.join(best)}?" if best else "gpuwhy kb search finds by words"
    raise UsageError(f"no entry {key[:_SHOWN]!r}", hint=hint, code="unknown_entry")


def _link(key: str, catalogue: Catalogue) -> Bullet:
    concern, _, name = key.partition("/")
    return Bullet(line(code(key), f": {catalogue.entries[concern][name]['title']}"))


def _jsonable(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key): value for key, value in raw.items()}
