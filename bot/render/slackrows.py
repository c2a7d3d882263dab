"""Blocks of an answer as rows of mrkdwn, each short enough for a section of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bot.answer import (
    Align,
    Block,
    Bullet,
    Bullets,
    Code,
    Fields,
    Heading,
    Line,
    Mark,
    Note,
    Span,
    Steps,
    Table,
    Text,
    line,
    strong,
    text_of,
)
from bot.render import mrkdwn
from bot.render.blockkit import size
from bot.render.plain import RISKS, cell_width
from bot.render.safe import visible, visible_lines
from engine.model import Step

# Longest row (bytes): a section holds 3,000 characters, and a code block has fences around it.
ROW = 2800
# Phones fold wider lines, and a folded table cannot be read.
_TABLE_COLUMNS = 60
# What a step says to type on a terminal is typed after /gpu here.
_TYPED = re.compile(r"gpuwhy (?=(?:why|sweep|decode|read|capture|rules|help)(?: |$))")


class Row(NamedTuple):
    """One row: markup, or a line of a code block."""

    text: str
    is_code: bool = False


def rows(block: Block) -> Iterator[Row]:
    """Yield a block of an answer as rows; a rule has none."""
    match block:
        case Heading(line=spans):
            # Bold beside code needs a space between them, which headings do not have.
            bold = all(span.mark is not Mark.CODE for span in spans)
            yield from _plain(_folded(spans, bold=bold))
        case Text(line=spans):
            yield from _plain(_folded(spans))
        case Fields(pairs=pairs):
            for name, value in pairs:
                yield from _plain(_folded(line(strong(f"{name}:"), " ", *value)))
        case Table():
            yield from _table(block)
        case Bullets(items=items):
            yield from _plain(_bullets(items, 0))
        case Code(text=text):
            yield from _code(text)
        case Steps(steps=steps):
            for number, step in enumerate(steps, 1):
                yield from _step(number, step)
        case Note(kind=kind, line=spans):
            yield from _plain(_folded(line(strong(f"{kind.value}:"), " ", *spans)))
        case _:
            return


def _step(number: int, step: Step) -> Iterator[Row]:
    risk = RISKS.get(step.risk)
    warned = line(" ", strong(f"[{risk}]")) if risk else ()
    yield from _plain(_folded((*line(f"{number}. ", step.do), *warned)))
    if step.command:
        yield from _code(_TYPED.sub("/gpu ", step.command))


def _bullets(items: Iterable[Bullet], depth: int) -> Iterator[str]:
    indent = "      " * depth + ("◦ " if depth else "• ")
    for item in items:
        yield from _folded(line(indent, *item.line))
        yield from _bullets(item.under, depth + 1)


def _code(text: str) -> Iterator[Row]:
    for row in visible_lines(text):
        safe = mrkdwn.code_row(row)
        if size(safe) <= ROW:
            yield Row(safe, is_code=True)
        else:
            for part in mrkdwn.chunks(row, mrkdwn.PIECE):
                yield Row(mrkdwn.code_row(part), is_code=True)


def _table(table: Table) -> Iterator[Row]:
    head = [visible(name) for name in table.columns]
    rows = [[visible(text_of(cell)) for cell in row] for row in table.rows]
    widths = [max(cell_width(row[i]) for row in (head, *rows)) for i in range(len(head))]
    if sum(widths) + 2 * (len(widths) - 1) <= _TABLE_COLUMNS:
        for row in (head, *rows):
            cells = [
                " " * pad + cell if align is Align.RIGHT else cell + " " * pad
                for cell, width, align in zip(row, widths, table.align, strict=True)
                for pad in [width - cell_width(cell)]
            ]
            yield Row(mrkdwn.code_row("  ".join(cells).rstrip()), is_code=True)
        return
    for cells_of in table.rows:
        spans: list[Span | str] = ["• "]
        for name, cell in zip(table.columns, cells_of, strict=True):
            if text_of(cell).strip():
                spans += [", " if len(spans) > 1 else "", f"{name} ", *cell]
        yield from _plain(_folded(line(*spans)))


def _plain(rows: Iterable[str]) -> Iterator[Row]:
    return (Row(row) for row in rows if row.strip())


def _folded(spans: Line, *, bold: bool = False) -> Iterator[str]:
    """Yield a line as one row of markup, or as several if it is too long for a section."""
    whole = mrkdwn.markup(spans, bold=bold)
    if size(whole) <= ROW:
        yield whole
        return
    row, last = "", Mark.PLAIN
    for mark, piece in mrkdwn.pieces(spans, bold=bold):
        # Two runs of code, or of bold, would not be told apart side by side.
        if (mark is last and mark is not Mark.PLAIN) or size(row) + size(piece) > ROW:
            yield row
            row = ""
        row, last = row + piece, mark
    yield row
