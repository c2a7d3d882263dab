"""Readers of tools' listings under test: offered every line, and damaged samples for them."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path

from engine.catalogue import Catalogue
from engine.model import Finding
from engine.readers.base import Context, MakesReader, Result

SAMPLES = Path(__file__).parents[1] / "data" / "read"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_ODD = (
    "٣",
    "9" * 40,
    "-1",
    "nan",
    "inf",
    "1e999",
    "0",
    "",
    "N/A",
    "0x",
    "1.2.3",
    "18446744073709551616",
)


def read_by(makers: Sequence[MakesReader], text: str, catalogue: Catalogue) -> list[Result]:
    """Offer every line to every reader, also to those that would not be asked for it."""
    readers = [make(Context(catalogue)) for make in makers]
    for number, line in enumerate(text.split("\n"), 1):
        for reader in readers:
            reader.feed(number, line)
    return [reader.finish() for reader in readers]


def damaged(text: str, seed: int) -> str:
    """Return a sample as a bad copy: lines lost, doubled, cut, swapped; numbers made odd."""
    rng = random.Random(seed)
    lines = text.split("\n")
    for _ in range(rng.randint(1, 12)):
        at = rng.randrange(len(lines))
        line = lines[at]
        match rng.randrange(7):
            case 0:
                lines[at] = ""
            case 1:
                lines.insert(at, line)
            case 2:
                lines[at] = line[: rng.randint(0, len(line))]
            case 3:
                lines[at], lines[-1] = lines[-1], line
            case 4:
                lines[at] = _NUMBER.sub(lambda _: rng.choice(_ODD), line, count=rng.randint(1, 4))
            case 5:
                lines[at] = "node-1: " + line
            case _:
                cut = rng.randint(0, len(line))
                lines[at] = line[:cut] + chr(rng.randint(1, 0x2FFF)) + line[cut:]
    return "\n".join(lines)


def faults_of_damage(
    makers: Sequence[MakesReader], name: str, catalogue: Catalogue, copies: int = 60
) -> list[str]:
    """Return what is wrong with the findings of damaged copies of a sample."""
    text = (SAMPLES / name).read_text(encoding="utf-8")
    return [
        fault
        for seed in range(copies)
        for result in read_by(makers, damaged(text, seed), catalogue)
        for finding in result.findings
        for fault in faults_of(finding, catalogue)
    ]


def said_of(makers: Sequence[MakesReader], lines: Sequence[str], catalogue: Catalogue) -> list[str]:
    """Return what readers say of some lines that are offered to them."""
    results = read_by(makers, "\n".join(lines), catalogue)
    return [finding.says for result in results for finding in result.findings]


def faults_of(found: Finding, catalogue: Catalogue) -> list[str]:
    """Return what is wrong with the form of a finding, whatever it says."""
    faults = []
    text = f"{found.says} {found.action}"
    if _CONTROL.search(text):
        faults.append(f"control character in {text!r}")
    if len(text) > 2_000:
        faults.append(f"{len(text)} characters of text")
    if found.cause is not None and found.cause not in catalogue.taxonomy:
        faults.append(f"unknown cause {found.cause}")
    if not found.says.endswith((".", '."', ")")):
        faults.append(f"no sentence: {found.says!r}")
    return faults
