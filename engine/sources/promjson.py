"""Answers of the Prometheus HTTP API, turned into arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import orjson

from engine.errors import SourceError
from engine.samples import Floats, RawSeries
from engine.sources.text import looks_like_html, not_told, show, start_of

# Takes our secrets out of what a server says, before it is shortened: half a secret is not found.
Redact = Callable[[str], str]
_MOST_REMARKS = 100
_OF_NUMBERS = b"0123456789.eE+-,"
_NUMBERS = {int, float}
# So many values are read at once: more takes memory, and one NaN takes time for all beside it.
_TOGETHER = 1 << 14


@dataclass(frozen=True, slots=True)
class Answer:
    """The ``data`` of an answer and what the server remarked (warnings, infos, partial)."""

    result: list[dict[str, Any]]
    remarks: list[str]


def _bad(
    where: str, what: str, hint: str = "check that the URL is of a Prometheus API"
) -> SourceError:
    return SourceError(f"{where} {what}", hint=hint, code="source_bad_answer")


def error_text(body: bytes, redact: Redact) -> str:
    """Return what an error answer says: the API's own error text, else the start of the body."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return show(redact(start_of(body)))
    if isinstance(document, dict):
        text = document.get("error") or document.get("message")
        kind = document.get("errorType")
        if isinstance(text, str):
            text = text[:4096]
            said = f"{kind[:200]}: {text}" if isinstance(kind, str) else text
            return show(redact(said), 200)
    return show(redact(start_of(body)))


def parse_answer(body: bytes, where: str, result_type: str, redact: Redact) -> Answer:
    """Read a successful query answer.

    Args:
        body: the JSON text.
        where: the server, for messages.
        result_type: ``matrix`` or ``vector``.
        redact: takes secrets out of what the server says.

    Raises:
        SourceError: not JSON, cut off, or not of the shape the API promises.
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as e:
        if looks_like_html(body):
            raise _bad(
                where,
                "answers with a web page instead of JSON",
                "a sign-in page or a wrong base path; check URL and credentials",
            ) from e
        if body.lstrip()[:1] in {b"{", b"["}:
            raise _bad(where, "answers with JSON that is cut off or broken", "try again") from e
        if other := not_told(body):
            hint = "look at what a proxy in between does, and check the URL"
            raise _bad(where, f"answers with {other} instead of JSON", hint) from e
        said = show(redact(start_of(body)), 60)
        raise _bad(where, f"does not answer with JSON: {said}") from e
    if not isinstance(document, dict):
        raise _bad(where, "answers with JSON of another kind")
    if document.get("status") != "success":
        if document.get("status") == "error":
            raise _bad(where, f"answers with an error: {error_text(body, redact)}")
        raise _bad(where, "answers with JSON of another kind")
    data = document.get("data")
    if not isinstance(data, dict) or not isinstance(data.get("result"), list):
        raise _bad(where, "answers with JSON of another kind")
    got = data.get("resultType")
    if got != result_type:
        kind = show(redact(got[:4096]), 20) if isinstance(got, str) else "result of no kind"
        raise _bad(
            where,
            f"answers with a {kind} where a {result_type} was asked for",
        )
    remarks = []
    for key in ("warnings", "infos"):
        given = document.get(key) or []
        texts = given if isinstance(given, list) else []
        remarks += [
            show(redact(text[:4096]), 200) for text in texts[:_MOST_REMARKS] if type(text) is str
        ]
    if document.get("isPartial") is True:
        remarks.append("the answer is partial: some storage nodes did not answer")
    return Answer(data["result"], remarks)


def to_series(answer: Answer, where: str) -> list[RawSeries]:
    """Turn a matrix into series; all numbers are converted in one go.

    Times are Unix seconds, values as sent; ``NaN`` and ``±Inf`` stay. Native histograms are left
    out.

    Raises:
        SourceError: the matrix is not of the shape the API promises.
    """
    try:
        given = [s for s in answer.result if "values" in s]
        counts = [len(s["values"]) for s in given]
        total = sum(counts)
        rows = list(chain.from_iterable([s["values"] for s in given]))
        flat = list(chain.from_iterable(rows))
        _check_pairs(rows, flat[0::2])
        ts = np.fromiter(flat[0::2], dtype=np.float64, count=total)
        values = np.empty(total)
        for start in range(0, total, _TOGETHER):
            end = min(start + _TOGETHER, total)
            values[start:end] = _numbers(flat[2 * start + 1 : 2 * end : 2], end - start)
        series = []
        end = 0
        for one, count in zip(given, counts, strict=True):
            labels = _labels(one)
            name = labels.pop("__name__", "")
            series.append(RawSeries(name, labels, ts[end : end + count], values[end : end + count]))
            end += count
    except (KeyError, TypeError, ValueError) as e:
        raise _bad(where, "answers with a matrix that is malformed") from e
    return series


def _check_pairs(rows: list[Any], times: list[Any]) -> None:
    """Check that all rows are pairs that begin with a time.

    Raises:
        TypeError, ValueError: some are not.
    """
    if not {*map(type, rows)} <= {list} or not {*map(type, times)} <= _NUMBERS:
        raise TypeError("a row is no list, or does not begin with a time")
    if not {*map(len, rows)} <= {2}:
        raise ValueError("a row is no pair")


def _numbers(texts: list[Any], count: int) -> Floats:
    """Turn the text of so many numbers into numbers.

    Where all are what JSON calls a number, its reader takes a sixth of the time of `float`.

    Raises:
        TypeError, ValueError: some are no numbers, or there are fewer.
    """
    try:
        joined = ",".join(texts).encode()
        # JSON reads -0 as the whole number 0.
        if not (joined.translate(None, _OF_NUMBERS) or b"-0," in joined or joined[-2:] == b"-0"):
            numbers = orjson.loads(b"[%b]" % joined)
            if len(numbers) == count:
                return np.fromiter(numbers, dtype=np.float64, count=count)
    except (TypeError, ValueError):
        pass  # not all are text, or of the form of JSON: NaN, +Inf, 1.
    if not {*map(type, texts)} <= {str, *_NUMBERS}:
        raise TypeError("a value is neither text nor a number")
    return np.fromiter(map(float, texts), dtype=np.float64, count=count)


def to_vector(answer: Answer, where: str) -> list[tuple[Mapping[str, str], float]]:
    """Return labels and value of every element of a vector.

    Raises:
        SourceError: the vector is not of the shape the API promises.
    """
    try:
        rows = [one["value"] for one in answer.result]
        _check_pairs(rows, [row[0] for row in rows])
        return [
            (_labels(one), float(value))
            for one, (_, value) in zip(answer.result, rows, strict=True)
        ]
    except (KeyError, TypeError, ValueError, IndexError) as e:
        raise _bad(where, "answers with a vector that is malformed") from e


def _labels(one: Mapping[str, Any]) -> dict[str, str]:
    given = one["metric"]
    if type(given) is not dict:
        raise TypeError("labels are no object")
    "".join(given.values())  # a TypeError if a label is no text
    return dict(given)


def to_label_sets(answer: Answer, where: str) -> list[Mapping[str, str]]:
    """Return the labels of a vector's elements, ``__name__`` included where there is one.

    Raises:
        SourceError: the vector is not of the shape the API promises.
    """
    try:
        return [_labels(one) for one in answer.result]
    except (KeyError, TypeError, ValueError) as e:
        raise _bad(where, "answers with a vector that is malformed") from e
