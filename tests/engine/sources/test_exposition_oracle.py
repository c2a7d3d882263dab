"""Random exposition text, read here and by prometheus_client: the same series and samples."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from engine.samples import Selection
from engine.sources import FileSource
from engine.sources import textblocks as textblocks_module

EVERYTHING = [Selection((), (), 1e12)]
Key = tuple[str, frozenset[tuple[str, str]]]
Readings = dict[Key, list[tuple[float | None, str]]]

PIECES = [*'ab \\"}{,=#\t\r\né\u2028', "} ", "} 5 ", " # ", '"} 1\n', "# EOF"]
NASTY = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
# The oracle does not read escapes inside exemplars.
EXEMPLAR = st.lists(st.sampled_from(["a", " ", "} ", "{", " # ", "#"]), max_size=6).map("".join)
LABELS = st.dictionaries(
    st.sampled_from(
        ["gpu", "modelName", "err_msg", "_x9"]
    ),  # no host: clocks are compared elsewhere
    st.one_of(NASTY, st.just("")),
    max_size=3,
)
VALUES = st.one_of(
    st.sampled_from(
        ["0", "-0.0", "1980", "NaN", "+Inf", "-Inf", "1e-9", "3.40e+38", "18446744073709551615"]
    ),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)
SECONDS = st.integers(1_400_000_000_000, 1_700_000_000_000)  # as milliseconds, all in the past
HELP = st.text(st.characters(exclude_characters="\n\r\0", codec="utf-8"), max_size=20)


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def head(name: str, labels: dict[str, str]) -> str:
    if not labels:
        return name
    return name + "{" + ",".join(f'{k}="{escaped(v)}"' for k, v in labels.items()) + "}"


def readings_of(path: Path) -> Readings:
    batch = asyncio.run(FileSource([path]).select(EVERYTHING, at=None))
    assert batch.warnings == [] or all(
        "repeat a time" in w or "without a time" in w for w in batch.warnings
    )
    return {
        (s.name, frozenset(s.labels.items())): [
            (t if s.timed else None, repr(v))
            for t, v in zip(s.ts.tolist(), s.values.tolist(), strict=True)
        ]
        for s in batch.series
    }


def expected(families: Iterable[Metric]) -> Readings:
    """The oracle's samples as a source gives them: sorted by time, the last of one time kept."""
    found: dict[Key, list[tuple[Any, float]]] = {}
    for family in families:
        for s in family.samples:
            key = (s.name, frozenset((k, v) for k, v in s.labels.items() if v))
            found.setdefault(key, []).append((s.timestamp, float(s.value)))
    out: Readings = {}
    for key, samples in found.items():
        timed = {float(t): v for t, v in samples if t is not None}
        if timed:
            out[key] = [(t, repr(timed[t])) for t in sorted(timed)]
        else:
            out[key] = [(None, repr(v)) for _, v in samples]
    return out


def close(a: Readings, b: Readings) -> None:
    assert a.keys() == b.keys()
    for key, samples in a.items():
        assert [v for _, v in samples] == [v for _, v in b[key]], key
        for (t, _), (u, _) in zip(samples, b[key], strict=True):
            assert (t is None) == (u is None)
            assert t is None or math.isclose(t, u or 0, abs_tol=1e-6, rel_tol=0)


@st.composite
def text_format(draw: Callable[..., Any]) -> str:
    lines = []
    stamped = draw(st.sampled_from(["all", "none", "some"]))
    series = draw(
        st.lists(st.tuples(st.sampled_from(["a", "b:c", "DCGM_x", "up"]), LABELS), max_size=4)
    )
    for name, labels in draw(st.lists(st.sampled_from(series), max_size=20)) if series else []:
        kind = draw(st.integers(0, 9))
        if kind == 0:
            lines.append(f"# HELP {name} {draw(HELP)}")
        elif kind == 1:
            lines.append(f"# TYPE {name} gauge")
        elif kind == 2:
            lines.append(draw(st.sampled_from(["", "  ", "#", "# EOF", "# a} b 1", "#x{} 1 2"])))
        gap = draw(st.sampled_from([" ", " ", " ", "  ", "\t"]))
        line = head(name, labels) + gap + draw(VALUES)
        if stamped == "all" or (stamped == "some" and draw(st.booleans())):
            line += draw(st.sampled_from([" ", " ", "  "])).replace(" ", gap) + str(draw(SECONDS))
        lines.append(
            draw(st.sampled_from(["", "", "", " "])) + line + draw(st.sampled_from(["", "", " "]))
        )
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return end.join(lines) + draw(st.sampled_from([end, end]))


@st.composite
def openmetrics(draw: Callable[..., Any]) -> str:
    lines = []
    for name in draw(st.lists(st.sampled_from(["a", "b:c", "DCGM_x"]), unique=True, max_size=3)):
        counter = draw(st.booleans())
        lines.append(f"# TYPE {name} {'counter' if counter else 'gauge'}")
        lines.append(f"# HELP {name} {escaped(draw(HELP))}")
        full = f"{name}_total" if counter else name
        sets = draw(st.lists(LABELS, max_size=3, unique_by=lambda d: tuple(sorted(d.items()))))
        for labels in sets:
            stamps = sorted(draw(st.lists(SECONDS, min_size=1, max_size=6, unique=True)))
            for stamp in stamps:
                value = str(draw(st.integers(0, 10**18))) if counter else draw(VALUES)
                line = f"{head(full, labels)} {value} {stamp // 1000}.{stamp % 1000:03}"
                if counter and draw(st.booleans()):
                    line += (
                        f" # {head('', {'trace_id': draw(EXEMPLAR)})} 0.67 {draw(SECONDS) / 1000}"
                    )
                lines.append(line)
    return "\n".join([*lines, "# EOF"]) + draw(st.sampled_from(["", "\n"]))


few = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(text_format(), st.sampled_from([7, 64, 1 << 20]))
@few
def test_text_format(tmp_path: Path, text: str, chunk: int) -> None:
    oracle = expected(read_text(text))
    path = tmp_path / "metrics.txt"
    # Something readable, so that a file of nothing but blank lines is not refused as empty.
    path.write_bytes(b"# begin\n" + text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(textblocks_module, "CHUNK", chunk)
        close(readings_of(path), oracle)


@given(openmetrics(), st.sampled_from([7, 64, 1 << 20]))
@few
def test_openmetrics(tmp_path: Path, text: str, chunk: int) -> None:
    oracle = expected(read_openmetrics(text))
    path = tmp_path / "metrics.om"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(textblocks_module, "CHUNK", chunk)
        close(readings_of(path), oracle)


@given(openmetrics())
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_what_is_not_asked_for_changes_nothing(tmp_path: Path, text: str) -> None:
    """Selecting by name and matcher gives the same series as reading all and throwing away."""
    path = tmp_path / "metrics.om"
    path.write_bytes(text.encode())

    async def ask(names: tuple[str, ...]) -> list[tuple[str, Any, list[float], list[float]]]:
        batch = await FileSource([path]).select([Selection(names, (), 1e12)], at=None)
        return [
            (s.name, s.labels, s.ts.tolist(), np.nan_to_num(s.values).tolist())
            for s in batch.series
        ]

    wanted = ("a", "DCGM_x_total")
    everything = asyncio.run(ask(()))
    assert asyncio.run(ask(wanted)) == [s for s in everything if s[0] in wanted]
