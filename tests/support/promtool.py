"""The tests that sit in the rules, as input of ``promtool test rules``.

Every test becomes a host of its own with the GPUs of the test, so that one run of promtool
evaluates all of them. A reading is written under one of its signal's metric names, at the scrape
that would have seen it; a series that ends is marked stale, as a scrape does.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from engine.catalogue.types import Catalogue, RuleTest, Signal, Spelling
from engine.diagnosis.homes import home
from engine.diagnosis.ruletest import AT, STEP_S, WINDOW_S, readings, scope_of
from engine.export.recorded import has_series
from tests.support.servers import binary
from tests.support.yamlfiles import parse

STEPS = int(WINDOW_S / STEP_S)
BLANK = "9223372036854775792"
MODEL = "NVIDIA H100 80GB HBM3"


@dataclass(frozen=True)
class Case:
    """The readings of a rule's test, and the host that they became.

    Attributes:
        says: what the tests with these readings expect, by rule.
        sparse: some readings came less often than the rules look, so that they weigh otherwise.
    """

    test: RuleTest
    host: str
    says: Mapping[str, str]
    sparse: bool

    @property
    def steady(self) -> bool:
        """Whether nothing changes in the whole window."""
        return all(isinstance(v, int | float) for given in givens(self) for v in given.values())


def cases(catalogue: Catalogue, rules: Collection[str]) -> list[Case]:
    """Return the tests of some symptoms and causes of GPUs, each set of readings once.

    Only those whose readings have a series: promtool is given series.
    """
    own = home(catalogue, "gpu")
    found: dict[str, tuple[RuleTest, dict[str, str]]] = {}
    for rule in (*own.symptoms.values(), *own.causes.values()):
        for test in rule.tests if rule.id in rules else ():
            if scope_of(catalogue, rule, test) == "gpu" and all(
                has_series(catalogue.signals[name]) for name in _signals(test)
            ):
                same = repr((sorted(test.given.items()), test.siblings, test.model))
                found.setdefault(same, (test, {}))[1][rule.id] = test.expect
    return [
        Case(seen := _scraped(test), f"t-{k}", says, sparse=seen != test)
        for k, (test, says) in enumerate(found.values())
    ]


def givens(case: Case) -> list[Mapping[str, Any]]:
    """Return the readings of a case's GPU and of its siblings."""
    siblings = case.test.siblings or {}
    alike = [siblings.get("given", {})] * int(siblings.get("count", 0))
    return [case.test.given, *alike, *([siblings["odd"]] if siblings.get("odd") else [])]


def _signals(test: RuleTest) -> set[str]:
    siblings = test.siblings or {}
    return {*test.given, *siblings.get("given", {}), *siblings.get("odd", {})}


def _scraped(test: RuleTest) -> RuleTest:
    """Return a test with its lists as the rules see them, who look every 15 s.

    Between two samples the older one counts, for the five minutes of Prometheus' lookback.
    """
    siblings = test.siblings and {
        name: _held(value) if isinstance(value, dict) else value
        for name, value in test.siblings.items()
    }
    return replace(test, given=_held(test.given), siblings=siblings)


def _held(given: Mapping[str, Any]) -> dict[str, Any]:
    held: dict[str, Any] = {}
    for name, value in given.items():
        held[name] = value
        if isinstance(value, list) and 1 < len(value) <= STEPS:
            apart = WINDOW_S / (len(value) - 1)
            held[name] = [value[int(k * STEP_S / apart + 1e-9)] for k in range(STEPS + 1)]
    return held


def uuid(case: Case, gpu: int = 0) -> str:
    """Return the UUID of a case's GPU."""
    return f"GPU-{case.host}-{gpu}"


def series(case: Case, catalogue: Catalogue, *, newest: bool) -> list[dict[str, str]]:
    """Return the input series of a case, under the usual metric names or the newest ones."""
    out = []
    for gpu, given in enumerate(givens(case)):
        labels = {
            "UUID": uuid(case, gpu),
            "gpu": str(gpu),
            "modelName": case.test.model or MODEL,
            "hostname" if newest else "Hostname": case.host,
        }
        out += _of_gpu({**labels, **_target(case)}, given, catalogue, newest=newest)
    for name, value in case.test.given.items():
        signal = catalogue.signals[name]
        if signal.scope == "node":
            spelling = _spelling(signal, newest=newest)
            labels = {**_of_node(case, spelling, name), **spelling.match}
            out.append(_series(spelling.name, labels, value, spelling.scale))
    return out


def _of_node(case: Case, spelling: Spelling, name: str) -> dict[str, str]:
    """Return the labels of a node's series, as its exporter and Prometheus write them."""
    if name == "exporter_up":
        return _target(case)
    if spelling.exporter == "dcgm-exporter":
        return {"hostname": case.host, "nvswitch": "nvswitch0", **_target(case)}
    return {"instance": f"{case.host}:9100", "job": "node"}


def _target(case: Case) -> dict[str, str]:
    return {"instance": f"{case.host}:9400", "job": "dcgm-exporter"}


def _of_gpu(
    labels: Mapping[str, str], given: Mapping[str, Any], catalogue: Catalogue, *, newest: bool
) -> list[dict[str, str]]:
    signals = {n: catalogue.signals[n] for n in given if catalogue.signals[n].spellings}
    out = []
    for name, signal in signals.items():
        if signal.scope != "gpu":
            continue
        spelling = _spelling(signal, newest=newest)
        for more in _extra(signal, given) if signal.core else [{}]:
            all_labels = {**labels, **spelling.match, **more}
            out.append(_series(spelling.name, all_labels, given[name], spelling.scale))
    if not any(s.core for s in signals.values()):
        # The GPU is seen all the same: by a series without a reading.
        out += [
            _series(_spelling(catalogue.signals["power_usage"], newest=newest).name, {**labels, **more}, "blank", 1.0)
            for more in _extra(catalogue.signals["power_usage"], given)
        ]  # fmt: skip
    return out


def _extra(signal: Signal, given: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the labels that pods and MIG instances add to a GPU's series."""
    del signal
    pods = [{"pod": f"p{k}", "namespace": "ml"} for k in range(int(given.get("pods", 0)))] or [{}]
    count = int(given.get("mig_instances", 0))
    slices = [{"GPU_I_ID": str(k), "GPU_I_PROFILE": "1g.10gb"} for k in range(count)] or [{}]
    return [{**pod, **slice_} for pod in pods for slice_ in slices]


def _spelling(signal: Signal, *, newest: bool) -> Spelling:
    known = [s for s in signal.spellings if s.exporter != "nvidia_gpu_exporter"]
    dcgm = [s for s in known if s.name.startswith("DCGM")] or known
    return dcgm[-1] if newest else dcgm[0]


def _series(name: str, labels: Mapping[str, str], value: Any, scale: float) -> dict[str, str]:
    inner = ",".join(f'{k}="{v}"' for k, v in labels.items())
    return {"series": f"{name}{{{inner}}}", "values": " ".join(_slots(value, scale))}


def _slots(value: Any, scale: float) -> list[str]:
    """Return one text for each scrape: a value, ``_`` for none, ``stale`` after the last."""
    if value == "blank":
        return [BLANK] * (STEPS + 1)
    slots = ["_"] * (STEPS + 1)
    times, values = readings(value)
    # The scrape that sees a sample is the next one after it was taken.
    seen = [math.ceil((t - (AT - WINDOW_S)) / STEP_S - 1e-9) for t in times.tolist()]
    for slot, one in zip(seen, values.tolist(), strict=True):
        slots[slot] = _text(one / scale)
    if seen[-1] < STEPS:
        slots[seen[-1] + 1] = "stale"
    return slots


def _text(value: float) -> str:
    nearest = float(np.round(value))
    return str(int(nearest)) if math.isclose(value, nearest, rel_tol=1e-12) else repr(value)


_OURS = re.compile(r'gpuwhy:[\w:]+(?:\{(?:symptom|cause)="\w+")?')


def needed(rules: str, expressions: Iterable[str]) -> str:
    """Return a rule file with the recordings alone on which expressions rest, in their order.

    Another rule can change nothing about them, but promtool takes seconds to evaluate all.
    """
    groups = parse(rules)["groups"]
    wanted = {name for expr in expressions for name in _OURS.findall(expr)}
    every = [(rule, _names(rule)) for group in groups for rule in group["rules"]]
    kept: dict[int, Any] = {}
    while found := {
        k: rule for k, (rule, names) in enumerate(every) if k not in kept and names & wanted
    }:
        kept |= found
        wanted |= {name for rule in found.values() for name in _OURS.findall(rule["expr"])}
    group = {"name": "needed", "interval": "15s", "rules": [kept[k] for k in sorted(kept)]}
    return yaml.safe_dump({"groups": [group]}, sort_keys=False, width=10000)


def _names(rule: Mapping[str, Any]) -> set[str]:
    """Return what a recording may be called in an expression."""
    name = str(rule.get("record", ""))
    labels = rule.get("labels", {}).items()
    return {name, *(f'{name}{{{k}="{v}"' for k, v in labels)} - {""}


def run(folder: Path, rules: str, tests: Sequence[Mapping[str, Any]], step: str = "15s") -> str:
    """Run promtool and return what it complains of; empty if all tests pass."""
    (folder / "rules.yml").write_text(rules)
    document = {"rule_files": ["rules.yml"], "evaluation_interval": step, "tests": list(tests)}
    (folder / "test.yml").write_text(yaml.safe_dump(document, width=10000))
    done = subprocess.run(
        [binary("promtool"), "test", "rules", str(folder / "test.yml")],
        # A third of its time would go into collecting garbage; it takes 100 MB more instead.
        env={**os.environ, "GOGC": "400"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def recorded_series(openmetrics: str, start: float, step_s: float = STEP_S) -> list[dict[str, str]]:
    """Return the series of an OpenMetrics text as promtool's input; a gap is marked stale."""
    slots: dict[str, dict[int, str]] = {}
    for line in openmetrics.splitlines():
        if line and not line.startswith("#"):
            name, value, stamp = line.rsplit(" ", 2)
            slots.setdefault(name, {})[round((float(stamp) - start) / step_s)] = value
    last = max(k for found in slots.values() for k in found)
    out = []
    for name, found in slots.items():
        values = [found.get(k) or ("stale" if k - 1 in found else "_") for k in range(last + 1)]
        out.append({"series": name, "values": " ".join(values)})
    return out
