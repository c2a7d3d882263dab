"""Where the numbers in rules come from: limits, basis, overlays, and the checks of them."""

from __future__ import annotations

import re

import pytest

from engine.catalogue.lint import lint
from engine.catalogue.loader import load_catalogue, load_from
from engine.condition import Memo, compile_condition
from engine.errors import CatalogueError
from tests.engine.condition.world import AT, H100, frame
from tests.support.house import RULES

LOW = "rules/symptoms/power/brake_bit.yaml"
LIMITS = "knowledge/thresholds.yaml"
ENTRY = """\
thresholds:
  - id: clock_low
    title: low clock
    kind: threshold
    text: as low as that
    value: {value}
    unit: {unit}
    site_default: true
    source: ["{source}"]
    status: single
"""
KNOWN = ENTRY.format(value=1000, unit="MHz", source="site default: a round number")


def rule(when: str, *, threshold: str = "somewhere", basis: str = "") -> str:
    """Return the house's symptom with another condition."""
    text = RULES[LOW].replace('has(throttle_reasons, "hw_power_brake")', when)
    return text.replace("threshold: the bit itself\n", f'threshold: "{threshold}"\n{basis}')


def found(root) -> list[str]:
    return [f"{p.check}: {p.message}" for p in lint(root=root) if "concern" not in p.message]


@pytest.mark.parametrize(
    ("when", "more", "numbers"),
    [
        ("sm_clock < 1200", {}, "1200"),
        ("sm_clock < 1200 or sm_clock > 1900", {}, "1200, 1900"),
        ("sm_clock < 0.5 * siblings.median(sm_clock)", {}, "0.5"),
        ("siblings.count(sm_clock < 900) >= 1", {}, "900"),
        ("coalesce(sm_clock, 300) > 0", {}, "300"),
        ("sm_clock < limit.clock_low - 20", {}, "20"),
        ("sm_clock < 1200", {"threshold": "a site default"}, "1200"),
        ("sm_clock < limit.clock_low * 1.1", {}, "1.1"),
        ("sm_clock < limit.clock_low", {}, ""),
        ('quantile(0.9, sm_clock, "5m") < limit.clock_low', {}, ""),
        ("siblings.count(not sm_clock > 0) >= 1", {}, ""),
        ("sm_clock < limit.clock_low / 100", {}, ""),
        ("sm_clock / 1e9 > 0 and sm_clock >= 1 and sm_clock > -1", {}, ""),
        ("sm_clock < 1200", {"threshold": "site default: a round number"}, ""),
        ("sm_clock < 1200", {"basis": "basis: [throttle_reasons/sw_power_cap]\n"}, ""),
        ('has(throttle_reasons, "hw_power_brake")', {}, ""),
    ],
)
def test_a_number_has_an_origin(root, put, when, more, numbers):
    put({LOW: rule(when, **more), LIMITS: KNOWN})
    wanted = (
        f"threshold-origin: rule 'brake_bit' does not say where its threshold {numbers} comes from"
    )
    assert [line for line in found(root) if line.startswith("threshold-origin")] == (
        [wanted] if numbers else []
    )


def test_a_limit_that_nothing_uses_is_a_warning(root, put):
    put({LIMITS: KNOWN})
    (problem,) = [p for p in lint(root=root) if p.check == "unused-limits"]
    assert (problem.severity, problem.file, problem.line) == ("warning", LIMITS, 2)
    assert "limit.clock_low" in problem.message
    put({LIMITS: KNOWN + "    used_by: [the alert rules]\n"})
    assert not found(root)
    put({LIMITS: KNOWN, LOW: rule("sm_clock < limit.clock_low")})
    assert not found(root)


def test_a_basis_must_lead_somewhere(root, put):
    put({LOW: rule("sm_clock > 0", basis="basis: [throttle_reasons/sw_power_cab]\n")})
    with pytest.raises(CatalogueError) as caught:
        load_from(root)
    (problem,) = caught.value.problems
    assert str(problem) == (
        f"{LOW}:8:9: basis 'throttle_reasons/sw_power_cab' leads nowhere; "
        "did you mean 'sw_power_cap'?"
    )
    put({LOW: rule("sm_clock > 0", basis="basis: [throttle_reasons/sw_power_cap]\n")})
    assert load_from(root).symptoms["brake_bit"].basis == ("throttle_reasons/sw_power_cap",)


def test_an_unknown_limit_is_named_with_its_place(root, put):
    put({LOW: rule("sm_clock < limit.clock_lov"), LIMITS: KNOWN})
    with pytest.raises(CatalogueError) as caught:
        load_from(root)
    (problem,) = caught.value.problems
    assert str(problem) == f"{LOW}:6:24: unknown limit 'clock_lov'; did you mean 'clock_low'?"


@pytest.mark.parametrize(
    ("value", "unit", "source", "at", "said"),
    [
        ("0", "MHz", "site default: x", "6", "greater than 0"),
        (".inf", "MHz", "site default: x", "6", "finite"),
        ("70", "ratio", "site default: x", "2", "write 0.7 for 70 %"),
        ("many", "MHz", "site default: x", "6", "a number"),
        ("1000", "MHz", "our own", "2", "begins with 'site default: '"),
        ("0.9", "ratio", "site default: x", "7", "limit 'clock_low' is in MHz, not in ratio"),
    ],
)
def test_a_bad_limit_of_a_site_leaves_ours(root, put, overlay, value, unit, source, at, said):
    put({LOW: rule("sm_clock < limit.clock_low"), LIMITS: KNOWN})
    mine = overlay({LIMITS: ENTRY.format(value=value, unit=unit, source=source)})
    with pytest.raises(CatalogueError) as caught:
        load_from(root, [mine])
    (problem,) = caught.value.problems
    assert problem.file == f"{mine}/{LIMITS}"
    assert (str(problem.line), said in str(problem)) == (at, True), str(problem)
    kept = load_from(root, [mine], strict=False)
    assert kept.problems == (problem,)
    assert kept.limits["clock_low"].value == 1000
    assert "brake_bit" in kept.symptoms


def test_a_limit_of_a_site_counts_for_all_rules(root, put, overlay):
    put({LOW: rule("sm_clock < limit.clock_low"), LIMITS: KNOWN})
    mine = overlay({LIMITS: ENTRY.format(value=1500, unit="MHz", source="site default: ours")})
    judged = {}
    for name, overlays in (("shipped", []), ("site", [mine])):
        catalogue = load_from(root, overlays)
        one = catalogue.symptoms["brake_bit"]
        condition = compile_condition(one.when, catalogue, one.when_place)
        made = frame([{"sm_clock": [(AT, 1200.0)]}])
        judged[name] = condition.evaluate(made, Memo(made)).tolist()
    assert judged == {"shipped": [-1], "site": [1]}
    assert catalogue.limits["clock_low"].origin == (
        f"site default: ours (limit.clock_low in {mine}/{LIMITS})"
    )


@pytest.mark.usefixtures("indexed")
def test_each_shipped_limit_says_whose_it_is():
    for limit in load_catalogue().limits.values():
        assert limit.site_default == limit.source[0].startswith("site default: "), limit
        assert limit.origin == f"{limit.source[0]} (limit.{limit.id})"


# What the words of the matrix are as readings: beyond the limit, or at nothing.
MATRIX = "sm_activity_matrix"
COLUMNS = {
    "sm_active": ("sm_active_high", "sm_active_low"),
    "tensor_active": ("tensor_active_high", "tensor_active_low"),
    "dram_active": ("dram_active_high", "dram_active_low"),
    "gr_engine_active": ("busy_ratio", "idle_ratio"),
    "gpu_util": ("gpu_util_high", "gpu_util_high"),
    "sm_occupancy": ("sm_occupancy_low", "sm_occupancy_low"),
}
OPPOSITE = {
    "sm_busy": "sm_low", "tensor_high": "tensor_low", "dram_high": "dram_low",
    "sm_low": "sm_busy", "tensor_low": "tensor_high", "dram_low": "dram_high",
}  # fmt: skip


def rows() -> list[str]:
    entries = load_catalogue().entries[MATRIX]
    return [key for key, entry in entries.items() if "symptoms" in entry["facts"]]


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize("row", rows())
def test_a_row_of_the_activity_matrix_is_what_the_rules_see(row):
    catalogue = load_catalogue()
    facts = catalogue.entries[MATRIX][row]["facts"]
    readings = {"power_usage": 100.0, "sm_clock": 500.0, "fp64_active": 0.2}
    for column, (high, low) in COLUMNS.items():
        word = facts.get(column)
        value = {
            "high": catalogue.limits[high].value,
            "low": catalogue.limits[low].value * 0.9,
            "zero": 0.0,
        }.get(word)
        if value is not None:
            readings[column] = value
    made = frame([{name: [(AT, v)] for name, v in readings.items()}], models=[H100])
    memo = Memo(made)
    symptoms = {name: catalogue.symptoms[name] for name in facts["symptoms"]}
    limits: set[str] = set()
    for symptom in symptoms.values():
        condition = compile_condition(symptom.when, catalogue, symptom.when_place)
        limits |= {f"limit.{name}" for name in condition.limits}
        assert condition.evaluate(made, memo).tolist() == [1], symptom.id
        if other := OPPOSITE.get(symptom.id):
            wrong = compile_condition(
                catalogue.symptoms[other].when, catalogue, catalogue.symptoms[other].when_place
            )
            assert wrong.evaluate(made, memo).tolist() == [-1], other
    assert limits == set(facts["limits"])


@pytest.mark.usefixtures("indexed")
def test_the_matrix_states_the_limits_that_it_refers_to():
    catalogue = load_catalogue()
    fields = catalogue.entries[MATRIX]["fields"]
    for name in fields["facts"]["limits"]:
        limit = catalogue.limits[name.removeprefix("limit.")]
        assert re.search(
            rf"(?<![\d.]){re.escape(f'{limit.value:g}')}(?![\d.]\d)", fields["text"]
        ), name
