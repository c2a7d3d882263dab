"""The rule file: valid, complete, the same each time, and free of expressions known to be broken."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from engine.catalogue import load_catalogue
from engine.catalogue.types import Catalogue, Pattern
from engine.diagnosis.homes import home
from engine.export import prometheus_rules
from engine.export.recorded import has_series
from engine.lookup.pages import pages
from engine.model import Class
from tests.support import packaged
from tests.support.servers import binary
from tests.support.yamlfiles import parse

CATALOGUE = packaged.catalogue()
MADE = packaged.exported()
DOCUMENT = parse(MADE.text)
RULES = [rule for group in DOCUMENT["groups"] for rule in group["rules"]]
EXPRESSIONS = [(rule.get("record") or rule["alert"], rule["expr"]) for rule in RULES]
# Words of PromQL that a pattern for metric names would take for one.
WORDS = {
    "and", "or", "unless", "on", "by", "group_left", "bool", "offset", "ignoring", "without",
}  # fmt: skip


def broken(expr: str) -> list[str]:
    """Say what is wrong with an expression: the faults of widespread alert rules."""
    bare = " ".join(re.sub(r'"[^"]*"', '""', expr).split())
    ratio = r"(?:DCGM_FI_PROF_\w*(?:ACTIVE|RATIO|OCCUPANCY)|gpuwhy:\w+:ratio)(?:\{[^}]*\})?"
    found = []
    if re.search(
        r"\b(?:and|or|unless)\s+(?:(?:on|ignoring)\s*\([^)]*\)\s*)?group_(?:left|right)", bare
    ):
        found.append("a set operator takes no group modifier")
    limits = re.findall(ratio + r"(?:\[\w+\])?\)*\s*[<>]=?\s*(\d+(?:\.\d+)?)", bare)
    found += [f"a ratio is compared with {limit}" for limit in limits if float(limit) > 1.05]
    if re.search(r"-\s*[\w:]+(?:\{[^}]*\})?(?:\[\w+\])?\s+offset\s+\w+\)*\s*>", bare):
        found.append("a drop is tested as a rise")
    if re.search(r"DCGM_FI_DEV_XID_ERRORS?\s*>\s*0", bare):
        found.append("the sticky Xid gauge is tested for its value")
    if re.search(r"DCGM_FI_DEV_CLOCK\w*_REASONS\s*>\s*0", bare):
        found.append("idle and power cap are throttle reasons too")
    return found


@pytest.mark.parametrize(
    ("expr", "fault"),
    [
        ("A and on (pod) group_left () B", "a set operator takes no group modifier"),
        ("A unless group_left () B", "a set operator takes no group modifier"),
        ("DCGM_FI_PROF_SM_ACTIVE < 50", "a ratio is compared with 50"),
        ("avg_over_time(DCGM_FI_PROF_SM_UTIL_RATIO[10m]) < 50", "a ratio is compared with 50"),
        ('gpuwhy:sm_active:ratio{host=~"a"} > 70', "a ratio is compared with 70"),
        ("(rate(x[5m]) - x offset 1h) > 0.2", "a drop is tested as a rise"),
        ("DCGM_FI_DEV_XID_ERRORS > 0", "the sticky Xid gauge is tested for its value"),
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS > 0", "idle and power cap are throttle reasons too"),
    ],
)
def test_the_search_for_broken_expressions_finds_them(expr: str, fault: str):
    assert broken(expr) == [fault]


@pytest.mark.parametrize(("name", "expr"), EXPRESSIONS, ids=range(len(EXPRESSIONS)))
def test_no_expression_is_broken_in_a_known_way(name: str, expr: str):
    assert broken(expr) == [], name


def metrics(expr: str) -> set[str]:
    """Return the metric names in an expression, those in regular expressions too."""
    named = set(re.findall(r'__name__=~"([^"]*)"', expr))
    bare = re.sub(r'"[^"]*"', '""', expr)
    bare = re.sub(r"\{[^}]*\}", "", bare)
    bare = re.sub(r"\[[^\]]*\]", "", bare)
    bare = re.sub(r"\b(?:by|on|without|ignoring|group_left)\s*\([^)]*\)", "", bare)
    words = re.findall(r"(?<![\w.])[A-Za-z_][\w:]*(?![\w:]|\s*\()", bare)
    return {w for w in words if w not in WORDS} | {n for r in named for n in r.split("|")}


def test_every_metric_exists():
    known = set(CATALOGUE.spellings) | {r["record"] for r in RULES if "record" in r}
    for entry in CATALOGUE.entries["dcgm_fields"].values():
        known |= {str(name) for name in (entry["name"], *entry.get("names", ()))}
    known |= {
        "DCGM_EXP_XID_ERRORS_TOTAL", "DCGM_EXP_GPU_HEALTH_STATUS", "DCGM_EXP_CLOCK_EVENTS_TOTAL",
        "DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL",
    }  # fmt: skip
    unknown = {(name, m) for name, expr in EXPRESSIONS for m in metrics(expr) - known}
    # Durations behind `offset` look like no name: they begin with a digit.
    assert unknown == set()


def test_prometheus_takes_the_file(tmp_path: Path):
    file = tmp_path / "rules.yaml"
    file.write_text(MADE.text)
    command = [binary("promtool"), "check", "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{len(RULES)} rules found" in done.stdout
    assert "duplicate" not in (done.stdout + done.stderr)


def test_the_same_knowledge_gives_the_same_bytes():
    assert prometheus_rules(load_catalogue(strict=False)).text == MADE.text


def test_every_cause_is_an_alert_or_named_with_the_reason():
    alerts = {a.id for a in MADE.alerts if a.origin == "rules"}
    named = {item.id for item in (*MADE.left_out, *MADE.no_alert)}
    assert alerts | named == set(CATALOGUE.causes)
    assert not alerts & named
    for item in (*MADE.left_out, *MADE.no_alert):
        assert f"#   {item.id}: {item.reason}\n" in MADE.text


def test_what_is_benign_or_only_says_that_readings_are_missing_alerts_nobody():
    quiet = {item.id for item in MADE.no_alert}
    recorded = home(CATALOGUE, "gpu").causes
    assert quiet == {
        cause.id for cause in recorded.values() if cause.class_ in {Class.BENIGN, Class.BLIND}
    }


def test_alert_names_are_unique_and_lead_to_a_page_that_exists():
    names = [alert.name for alert in MADE.alerts]
    assert len(names) == len(set(names))
    written = pages(CATALOGUE)
    for alert in MADE.alerts:
        base, _, anchor = alert.annotations["runbook_url"].partition("#")
        page = written[base.removeprefix("docs/reference/")]
        assert f'<a id="{anchor}"></a>' in page, alert.name


def test_runbooks_may_lie_elsewhere():
    made = prometheus_rules(CATALOGUE, runbooks="https://example.org/kb")
    urls = {alert.annotations["runbook_url"] for alert in made.alerts}
    assert all(url.startswith("https://example.org/kb/") for url in urls)


def test_recorded_names_tell_the_unit():
    names = {rule["record"] for rule in RULES if "record" in rule}
    assert {
        "gpuwhy:gpu_temp:celsius",
        "gpuwhy:power_usage:watts",
        "gpuwhy:sm_active:ratio",
    } <= names
    for signal in filter(has_series, CATALOGUE.signals.values()):
        assert any(name.startswith(f"gpuwhy:{signal.id}:") for name in names), signal.id


def with_symptom(catalogue: Catalogue, name: str, **changes: object) -> Catalogue:
    symptom = replace(catalogue.symptoms[name], **changes)
    return replace(catalogue, symptoms={**catalogue.symptoms, name: symptom})


def test_a_cause_that_promql_cannot_say_is_left_out_with_all_that_rests_on_it():
    # Known to be false for a while has no form.
    catalogue = with_symptom(CATALOGUE, "dram_high", hold_s=60.0)
    bound = CATALOGUE.causes["memory_bound"]
    on_it = replace(bound, id="memory_bound", patterns=(Pattern(all=("cause/compute_bound",)),))
    catalogue = replace(catalogue, causes={**catalogue.causes, "memory_bound": on_it})
    made = prometheus_rules(catalogue)
    usual = {item.id for item in MADE.left_out}
    assert {item.id: item.reason for item in made.left_out if item.id not in usual} == {
        "compute_bound": (
            "symptom dram_high has a hold time and must be known to be false somewhere"
        ),
        "memory_bound": "it rests on the cause compute_bound, which is left out",
    }
    assert 'cause="compute_bound"' not in made.text
    assert "#   memory_bound: it rests on" in made.text


def test_a_rule_without_its_symptom_is_left_out():
    symptoms = {k: v for k, v in CATALOGUE.symptoms.items() if k != "several_pods"}
    made = prometheus_rules(replace(CATALOGUE, symptoms=symptoms))
    usual = {item.id for item in MADE.left_out}
    assert [(i.id, i.reason) for i in made.left_out if i.id not in usual] == [
        ("gpu_contention", "there is no symptom several_pods")
    ]


def test_without_rules_only_signals_are_recorded():
    made = prometheus_rules(replace(CATALOGUE, causes={}, symptoms={}, entries={}))
    assert made.alerts == ()
    assert parse(made.text)["groups"][0]["name"] == "gpuwhy"
