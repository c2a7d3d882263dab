"""Render an answer for a terminal: colours, tables and wrapping by rich.

All text goes in as `rich.text.Text` after `visible`: rich's own markup, emoji codes and
highlighting never see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Literal

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule as RichRule
from rich.table import Table as Grid
from rich.text import Text as Styled

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
    Mark,
    Note,
    NoteKind,
    Span,
    Steps,
    Table,
    Text,
    Tone,
    text_of,
)
from bot.render.plain import RISKS, spaced
from bot.render.safe import visible, visible_lines
from engine.model import Step

_MARKS = {Mark.PLAIN: "", Mark.STRONG: "bold", Mark.CODE: "cyan", Mark.MUTED: "dim"}
_TONES = {
    Tone.NEUTRAL: "",
    Tone.GOOD: "green",
    Tone.INFO: "blue",
    Tone.WARNING: "yellow",
    Tone.BAD: "red",
}
_JUSTIFY: dict[Align, Literal["left", "right"]] = {Align.LEFT: "left", Align.RIGHT: "right"}
_NARROWEST = 40


def render(answer: Answer, *, width: int, colour: bool) -> str:
    """Return the answer as text for a terminal of ``width`` columns (at least 40 are used).

    With ``colour`` the text holds SGR sequences of our own; without, none at all.
    """
    sink = StringIO()
    console = Console(
        file=sink,
        width=max(width, _NARROWEST),
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )
    console.print(_styled(answer.title, base="bold"))
    for block, gap in spaced(answer.blocks):
        if gap:
            console.print()
        for part in _block(block):
            # Text to copy is one `Styled` with no_wrap: the terminal may fold it, rich must not.
            console.print(part, soft_wrap=isinstance(part, Styled) and bool(part.no_wrap))
    return "".join(f"{text.rstrip()}\n" for text in sink.getvalue().splitlines())


def _block(block: Block) -> Iterator[RenderableType]:
    match block:
        case Heading(line=line, level=level):
            yield _styled(line, base="bold underline" if level == 1 else "bold")
        case Text(line=line):
            yield _styled(line)
        case Fields(pairs=pairs):
            grid = _grid()
            for name, value in pairs:
                grid.add_row(Styled(visible(name), style="dim"), _styled(value))
            yield grid
        case Table():
            yield Padding(_table(block), (0, 0, 0, 2))
        case Bullets(items=items):
            for item in items:
                yield from _bullet(item, depth=1)
        case Code(text=text):
            yield _to_copy(visible_lines(text), "    ", "    ")
        case Steps(steps=steps):
            for number, step in enumerate(steps, 1):
                yield from _step(number, step)
        case Note(kind=kind, line=line):
            tone = _TONES[Tone.WARNING if kind is NoteKind.WARNING else Tone.INFO]
            yield Styled.assemble((f"{kind.value}: ", tone), _styled(line))
        case _:
            yield RichRule(style="dim")


def _bullet(bullet: Bullet, depth: int) -> Iterator[RenderableType]:
    if all(span.mark is Mark.CODE for span in bullet.line):
        indent = " " * (2 * depth)
        yield _to_copy([visible(text_of(bullet.line))], f"{indent}• ", indent)
    else:
        yield _hanging("•", _styled(bullet.line), 2 * depth)
    for under in bullet.under:
        yield from _bullet(under, depth + 1)


def _step(number: int, step: Step) -> Iterator[RenderableType]:
    what = Styled(visible(step.do))
    if step.risk in RISKS:
        what.append(f" [{RISKS[step.risk]}]", style=_TONES[Tone.WARNING])
    yield _hanging(f"{number}.", what, 2)
    if step.command:
        yield _to_copy(visible_lines(step.command), "     $ ", "       ")


def _to_copy(lines: list[str], first: str, other: str) -> Styled:
    text = Styled(no_wrap=True, overflow="ignore")
    for number, content in enumerate(lines):
        text.append(other if number else first, style="dim")
        text.append(content + ("\n" if number < len(lines) - 1 else ""), _MARKS[Mark.CODE])
    return text


def _hanging(sign: str, text: Styled, indent: int) -> RenderableType:
    grid = _grid(padding=(0, 1, 0, 0))
    grid.add_row(Styled(sign, style="dim"), text)
    return Padding(grid, (0, 0, 0, indent))


def _grid(padding: tuple[int, int, int, int] = (0, 2, 0, 0)) -> Grid:
    grid = Grid.grid(padding=padding)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def _table(table: Table) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, align in zip(table.columns, table.align, strict=True):
        grid.add_column(Styled(visible(name)), justify=_JUSTIFY[align], overflow="fold")
    for row in table.rows:
        grid.add_row(*(_styled(cell) for cell in row))
    return grid


def _styled(line: Line, base: str = "") -> Styled:
    text = Styled(style=base)
    for span in line:
        text.append(visible(span.text), style=_style(span))
    return text


def _style(span: Span) -> str:
    return f"{_MARKS[span.mark]} {_TONES[span.tone]}".strip()
