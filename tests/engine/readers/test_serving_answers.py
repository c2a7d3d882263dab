"""Failed answers of an LLM server: a few among many name no cause."""

from __future__ import annotations

import pytest

from engine.catalogue import Catalogue
from engine.model import Severity
from engine.readers import read

WELL = 'INFO:     10.0.0.7:51234 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
FAILED = 'INFO:     10.0.0.7:5 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error\n'


@pytest.mark.parametrize(
    ("well", "failed", "cause"),
    [(0, 1, True), (1, 1, False), (500, 1, False), (1000, 9, False), (500, 9, True), (0, 3, True)],
)
def test_a_share_of_failed_answers_makes_the_cause(
    well: int, failed: int, cause: bool, catalogue: Catalogue
) -> None:
    answer = read((WELL * well + FAILED * failed).encode(), catalogue)

    assert answer.causes == (("serving_errors",) if cause else ())
    (finding,) = answer.findings
    assert finding.severity is (Severity.MEDIUM if cause else Severity.LOW)
    assert finding.data["server_errors"] == failed
    assert finding.data["answered_well"] == (well or None)


def test_metrics_scrapes_are_no_answers(catalogue: Catalogue) -> None:
    scrape = 'INFO:     10.0.0.7:51236 - "GET /metrics HTTP/1.1" 200 OK\n'

    answer = read((scrape * 1000 + FAILED * 2).encode(), catalogue)

    assert answer.causes == ("serving_errors",)


def test_a_failure_of_the_engine_stays_first(catalogue: Catalogue) -> None:
    died = "ERROR [async_llm.py:1] EngineCore encountered an issue. See stack trace above.\n"

    answer = read((WELL * 50 + died + FAILED).encode(), catalogue)

    assert answer.causes[:1] == ("serving_errors",)
    assert answer.findings[0].id == "engine_died"
