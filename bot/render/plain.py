"""Render an answer as plain lines: for pipes, files, grep and screen readers.

No colour, no box drawing, no wrapping: one point is one line, whatever its length. Nothing
outside the standard library is imported, so that a piped ``gpuwhy decode`` starts fast.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator

from bot.answer import (
    Align,
    Answer,
    Block,
    Bullet,
    Bullets,
    Code,
    Fields,
    Heading,
    Line,
    Note,
    Rule,
    Steps,
    Table,
    Text,
    text_of,
)
from bot.render.safe import visible, visible_lines

_GAP = "  "
RISKS = {
    "disturbs": "slows work while it runs",
    "disrupts": "stops work on the GPU",
}


def render(answer: Answer) -> str:
    """Return the answer as text, with a newline at the end."""
    lines = [_text(answer.title)]
    for block, gap in spaced(answer.blocks):
        if gap:
            lines.append("")
        lines.extend(_block(block))
    return "\n".join(lines) + "\n"


def cell_width(text: str) -> int:
    """Return how many terminal columns a text takes: wide characters take two, marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def spaced(blocks: Iterable[Block]) -> Iterator[tuple[Block, bool]]:
    """Yield every block of an answer, and whether an empty line belongs before it.

    What follows a heading or a paragraph directly is tied to it, and so are notes to each other.
    """
    before: Block = Rule()
    for block in blocks:
        tied = isinstance(before, Heading | Text) and not isinstance(
            block, Heading | Note | Rule | Fields
        )
        yield block, not (tied or (isinstance(before, Note) and isinstance(block, Note)))
        before = block


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading(line=line) | Text(line=line):
            yield _text(line)
        case Fields(pairs=pairs):
            width = max((cell_width(visible(name)) for name, _ in pairs), default=0) + 1
            for name, value in pairs:
                yield f"{_padded(visible(name) + ':', width)} {_text(value)}".rstrip()
        case Table():
            yield from _table(block)
        case Bullets(items=items):
            yield from _bullets(items, depth=1)
        case Code(text=text):
            yield from (f"    {part}".rstrip() for part in visible_lines(text))
        case Steps(steps=steps):
            for number, step in enumerate(steps, 1):
                risk = RISKS.get(step.risk)
                yield f"  {number}. {visible(step.do)}" + (f" [{risk}]" if risk else "")
                if step.command:
                    yield from _command(step.command)
        case Note(kind=kind, line=line):
            yield f"{kind.value}: {_text(line)}"
        case _:
            yield "-" * 20


def _command(command: str) -> Iterator[str]:
    first, *rest = visible_lines(command)
    yield f"     $ {first}"
    for part in rest:
        yield f"       {part}".rstrip()


def _bullets(items: tuple[Bullet, ...], depth: int) -> Iterator[str]:
    for item in items:
        yield f"{_GAP * depth}- {_text(item.line)}"
        yield from _bullets(item.under, depth + 1)


def _table(table: Table) -> Iterator[str]:
    head = [visible(name).upper() for name in table.columns]
    rows = [head, *([_text(cell) for cell in row] for row in table.rows)]
    widths = [max(cell_width(row[i]) for row in rows) for i in range(len(head))]
    for row in rows:
        cells = [
            _padded(cell, width, right=align is Align.RIGHT)
            for cell, width, align in zip(row, widths, table.align, strict=True)
        ]
        yield (_GAP + _GAP.join(cells)).rstrip()


def _padded(text: str, width: int, *, right: bool = False) -> str:
    space = " " * (width - cell_width(text))
    return space + text if right else text + space


def _text(line: Line) -> str:
    return visible(text_of(line))
