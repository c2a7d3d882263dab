"""Digits that nobody expects, in every sample (tests/data/read): no reader may raise.

`int` takes at most 4,300 digits, and takes those of other scripts; `str.isdigit` is true of
superscripts, which neither `int` nor `float` take.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path

import pytest

from engine.catalogue import Catalogue
from engine.readers import read
from tests.support.readings import judge

SAMPLES = sorted((Path(__file__).parents[2] / "data" / "read").iterdir())
RUN = re.compile("[0-9]+")
LONG = "7" * 5_000
OTHERS = {
    "arabic": str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩"),
    "superscript": str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"),
}
# One run of digits in so many is replaced at a time, so that lines keep what makes them known.
STEP = 6
# So many lines of a sample are taken.
LINES = 80


@pytest.fixture(params=SAMPLES, ids=lambda path: path.name)
def sample(request: pytest.FixtureRequest) -> str:
    """A sample, without the lines that repeat others but for their digits."""
    kept: dict[str, str] = {}  # by the line without its digits
    for line in request.param.read_text(encoding="utf-8", errors="replace").splitlines():
        kept.setdefault(RUN.sub("0", line), line[:4_000])
    return "\n".join(islice(kept.values(), LINES)) + "\n"


def _replaced(text: str, step: int, start: int, new: Callable[[str], str]) -> str:
    """Return a text with every ``step``-th run of digits replaced, from the ``start``-th on."""
    runs = count(-start)
    return RUN.sub(lambda run: run[0] if next(runs) % step else new(run[0]), text)


def test_digits_without_end_break_no_reader(sample: str, catalogue: Catalogue) -> None:
    for start in range(STEP):
        text = _replaced(sample, STEP, start, lambda _: LONG)
        read(text.encode(), catalogue, judge)


@pytest.mark.parametrize("digits", OTHERS.values(), ids=OTHERS)
def test_digits_of_other_scripts_break_no_reader(
    sample: str, digits: dict[int, str], catalogue: Catalogue
) -> None:
    for start in (0, 1):
        text = _replaced(sample, 2, start, lambda run: run.translate(digits))
        read(text.encode(), catalogue, judge)


@pytest.mark.parametrize("pid", ["7" * 5_000, "٧٩", "⁷⁹"])
def test_an_xid_of_a_process_with_an_odd_number(pid: str, catalogue: Catalogue) -> None:
    line = f"NVRM: Xid (PCI:0000:3b:00): 79, pid={pid}, name=python, GPU has fallen off the bus."
    (found,) = read(f"{line}\n".encode(), catalogue).findings
    assert found.id == "79"
    assert "pid" not in found.data


@pytest.mark.parametrize("number", ["7٩", "٧٩", "79٩"])
def test_a_number_with_digits_of_another_script_is_no_xid(
    number: str, catalogue: Catalogue
) -> None:
    line = f"NVRM: Xid (PCI:0000:3b:00): {number}, pid=1, name=python, GPU has fallen off the bus."
    assert not [f for f in read(f"{line}\n".encode(), catalogue).findings if f.kind == "xid"]
