"""``decode`` answers for every id and every name in the knowledge base, errata included."""

from __future__ import annotations

import pytest

from engine.catalogue.nearest import fold
from engine.decode import decode
from engine.decode.request import MAX_CHARACTERS
from engine.errors import UsageError
from engine.model import Candidate
from tests.support.shelf import catalogue

ENTRIES = [
    (concern, key)
    for concern, entries in catalogue().entries.items()
    for key, entry in entries.items()
    if "kind" in entry and "text" in entry
]
# Of entries with many names the first ones are tried.
SHOWN = 2
NUMBERED = [
    (kind, key)
    for kind, concern in (("field", "dcgm_fields"), ("xid", "xid"), ("sxid", "sxid"))
    for key in catalogue().entries[concern]
]


def items(candidates: tuple[Candidate, ...]) -> set[str]:
    """Return the ids of everything that was decoded."""
    return {item.id for candidate in candidates for item in candidate.items}


@pytest.mark.parametrize(("concern", "key"), ENTRIES)
def test_every_name_of_an_entry_leads_to_something_that_has_it(concern: str, key: str) -> None:
    entry = catalogue().entries[concern][key]
    for name in entry.get("names", ())[:SHOWN]:
        try:
            found = decode(name, catalogue())
        except UsageError:
            # A command line with several numbers or a negative one, or a long line, is for `ask`.
            assert len(name) > MAX_CHARACTERS or any(c.isdigit() for c in name)
            continue
        if not found.candidates:
            assert any(ch.isdigit() for ch in fold(name).split("_")[-1]), name
            continue
        named = catalogue().lookup_names[fold(name)]
        own = [c for c in found.candidates if f"{concern}/{key}" in items((c,))]
        others = [
            f"{c}/{e['id']}" for c, _, e in named if f"{c}/{e['id']}" in items(found.candidates)
        ]
        assert own or others or found.candidates
        for candidate in own:
            assert len(candidate.errata) == len(entry.get("errata") or ())
            assert candidate.sources


@pytest.mark.parametrize(("kind", "number"), NUMBERED)
def test_every_number_is_decoded_with_its_errata(kind: str, number: str) -> None:
    table = {"field": "dcgm_fields"}.get(kind, kind)
    entry = catalogue().entries[table][number]
    first = decode(f"{kind} {number}", catalogue()).candidates[0]
    assert first.items[0].id == number
    assert len(first.errata) == len(entry.get("errata") or ())


@pytest.mark.parametrize(
    ("name", "kind", "wanted"),
    [
        ("NCCL_IB_HCA", "nccl_variable", "nccl_variables/nccl_ib_hca"),
        ("nccl_timeout", "nccl_variable", "nccl_variables/nccl_timeout"),
        ("vllm:gpu_cache_usage_perc", "metric", "vllm_metrics/gpu_cache_usage_perc"),
        (
            "vllm:time_to_first_token_seconds_bucket",
            "metric",
            "vllm_metrics/time_to_first_token_seconds",
        ),
        ("gputrace", "report", "nsys_reports/cuda_gpu_trace"),
        ("cuda_gpu_kern_sum", "report", "nsys_reports/cuda_gpu_kern_sum"),
    ],
)
def test_names_old_and_new(name: str, kind: str, wanted: str) -> None:
    found = decode(name, catalogue()).candidates
    assert (kind, wanted) in {(c.kind, item.id) for c in found for item in c.items}


def test_an_unknown_name_offers_the_nearest_and_invents_nothing() -> None:
    found = decode("NCCL_IB_HCAA", catalogue())
    assert found.candidates == ()
    assert "NCCL_IB_HCA" in found.nearest
