"""``export``: knowledge and rules in the formats of Prometheus, Grafana and Alertmanager."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot.answer import Answer, Block, Heading, Text, bullets, code, line, strong
from bot.phrases import count
from engine.catalogue.nearest import did_you_mean
from engine.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.catalogue.types import Catalogue
    from engine.export import Exported
    from engine.export.verdicts import LeftOut

SCHEMA = "gpuwhy/export/1"
FORMATS = ("prometheus", "grafana", "alertmanager")
_FILES = {
    "prometheus": "rules.yaml",
    "grafana": "dashboard.json",
    "alertmanager": "alertmanager.yaml",
}


_RUNBOOKS = re.compile(r"(?:https?://)?[\w.~:/@%?=&+#-]*", re.ASCII)


def run(what: str, *, catalogue: Catalogue, runbooks: str = "") -> Answer:
    """Return a configuration for another program; its text stands in ``data["text"]``.

    Args:
        what: one of `FORMATS`.
        catalogue: knowledge and rules.
        runbooks: address of the folder with the reference pages, for the links of alerts; empty
            for the project's own relative path.

    Raises:
        UsageError: there is no such format, or the address is none.
    """
    from engine.export import (  # noqa: PLC0415 - numpy and yaml
        RUNBOOKS,
        alertmanager_config,
        grafana_dashboard,
        prometheus_rules,
    )

    if what not in FORMATS:
        hint = did_you_mean(what, FORMATS, otherwise=f"use one of {', '.join(FORMATS)}")
        raise UsageError(f"cannot export to {what!r}", hint=hint, code="unknown_format")
    if runbooks and what != "prometheus":
        raise UsageError(f"{what} has no runbook links", hint="leave out --runbook-base")
    if not _RUNBOOKS.fullmatch(runbooks):
        raise UsageError(
            "the runbook base is no address", hint="for example https://example.org/gpuwhy/"
        )
    if what == "grafana":
        return _answer(what, catalogue, grafana_dashboard(catalogue), {}, ())
    if what == "alertmanager":
        return _answer(what, catalogue, alertmanager_config(catalogue), {}, ())
    made = prometheus_rules(catalogue, runbooks=runbooks or RUNBOOKS)
    return _answer(what, catalogue, made.text, _counted(made), tuple(_told(made)))


def save(answer: Answer, file: Path) -> Answer:
    """Write the exported text into a file, and return an answer that says so.

    Raises:
        UsageError: the file cannot be written.
    """
    text = str(answer.data["text"])
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        said = f"cannot write {file}: {error.strerror or error}"
        raise UsageError(said, hint="name a file that you may write") from error
    data = {**answer.data, "file": str(file)}
    written = line(strong(str(answer.data["format"])), f" written to {file}")
    # The text is in the file; the rest of the answer says what was left out.
    return Answer(title=written, blocks=answer.blocks[1:], data=data)


def _answer(
    what: str, catalogue: Catalogue, text: str, more: dict[str, Any], blocks: Sequence[Block]
) -> Answer:
    lines = text.count("\n")
    command = code(f"gpuwhy export {what} > {_FILES[what]}")
    return Answer(
        title=line(strong(what), f": {count(lines, 'line')} made from knowledge and rules"),
        blocks=(Text(line("To have it in a file: ", command)), *blocks),
        data={
            "schema": SCHEMA,
            "format": what,
            "knowledge": catalogue.hash,
            **more,
            "text": text,
        },
    )


def _counted(made: Exported) -> dict[str, Any]:
    return {
        "recordings": len(made.recordings),
        "alerts": [
            {"name": a.name, "origin": a.origin, "id": a.id, "severity": a.labels["severity"]}
            for a in made.alerts
        ],
        "left_out": _listed(made.left_out),
        "no_alert": _listed(made.no_alert),
    }


def _listed(items: Sequence[LeftOut]) -> list[dict[str, str]]:
    return [{"id": item.id, "reason": item.reason} for item in items]


def _told(made: Exported) -> list[Block]:
    head = f"{count(len(made.recordings), 'recording rule')}, {count(len(made.alerts), 'alert')}"
    blocks: list[Block] = [Text(line(head))]
    for title, items in (
        ("Left out, since PromQL cannot say the same", made.left_out),
        ("Recorded, but without an alert", made.no_alert),
    ):
        if items:
            blocks.append(Heading(line(title), 2))
            blocks.append(bullets(line(code(item.id), f": {item.reason}") for item in items))
    return blocks
