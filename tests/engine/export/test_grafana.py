"""The dashboard: its form, and that every panel shows something on a simulated fleet.

A real Prometheus scrapes the fleet and evaluates the exported rules, once a second instead of every
15, so that the test need not wait.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from engine.catalogue import load_catalogue
from engine.export import grafana_dashboard, prometheus_rules
from engine.export.grafana import SCHEMA_VERSION
from engine.simulate import Fault, Fleet, Profile, running_clock, serve_fleet
from tests.support import packaged
from tests.support.servers import start_prometheus

CATALOGUE = packaged.catalogue()
BOARD = json.loads(grafana_dashboard(CATALOGUE))
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
QUERIES = [(p["title"], t["expr"]) for p in PANELS for t in p["targets"]]
START_S = 60.0


@contextmanager
def exporters(fleet: Fleet) -> Iterator[dict[str, list[tuple[str, str, str]]]]:
    """Serve a fleet from a thread of its own; yield (address, path, instance) by job."""
    loop, stop, ready = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
    found: dict[str, list[tuple[str, str, str]]] = {}

    async def serve() -> None:
        async with serve_fleet(fleet, clock=running_clock(fleet.start + 1800.0)) as served:
            for target in served.targets:
                found.setdefault(target.job, []).append(
                    (target.address, target.path, target.instance)
                )
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(10.0)
    try:
        yield found
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def configuration(jobs: dict[str, list[tuple[str, str, str]]], rules: Path) -> str:
    scrapes = []
    for job, targets in jobs.items():
        listed = [
            {"targets": [address], "labels": {"instance": instance}}
            for address, _, instance in targets
        ]
        path = targets[0][1]
        scrapes.append(
            {"job_name": job, "metrics_path": path, "honor_labels": True, "static_configs": listed}
        )
    return json.dumps(
        {
            "global": {
                "scrape_interval": "1s",
                "scrape_timeout": "1s",
                "evaluation_interval": "1s",
            },
            "rule_files": [str(rules)],
            "scrape_configs": scrapes,
        }
    )


def ask(url: str, query: str) -> list[Any]:
    reply = requests.get(f"{url}/api/v1/query", params={"query": query}, timeout=10)
    body = reply.json()
    assert body["status"] == "success", (query, body)
    return list(body["data"]["result"])


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("live")
    rules = folder / "rules.yaml"
    rules.write_text(prometheus_rules(CATALOGUE, interval_s=1).text)
    begun = Fleet().start
    fleet = Fleet(
        nodes=2,
        gpus=4,
        faults=[
            Fault("power_brake", "node-1", begun),
            Fault("power_limit_lowered", "node-0:1", begun),
        ],
        profiles={"node-1": Profile(names="canonical", host_label="hostname")},
    )
    with (
        exporters(fleet) as jobs,
        start_prometheus(folder / "data", config=configuration(jobs, rules)) as server,
    ):
        deadline = time.monotonic() + START_S
        while len(ask(server.url, "count by (host) (gpuwhy:cause)")) < 2:
            assert time.monotonic() < deadline, "the rules find nothing"
            time.sleep(0.5)
        time.sleep(3.0)  # what counts growth needs two samples
        yield server.url


@pytest.mark.parametrize(("title", "query"), QUERIES, ids=lambda text: str(text)[:50])
def test_every_query_of_every_panel_finds_something(title: str, query: str, prometheus: str):
    chosen = query.replace("$host", ".*").replace("$gpu", ".*")
    assert "$" not in chosen
    assert ask(prometheus, chosen), title


def test_no_rule_fails(prometheus: str):
    groups = requests.get(f"{prometheus}/api/v1/rules", timeout=10).json()["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert [r["name"] for r in rules if r["health"] == "err"] == []


def test_both_naming_styles_arrive_under_one_name(prometheus: str):
    for host, name in (
        ("node-0", "DCGM_FI_DEV_GPU_TEMP"),
        ("node-1", "DCGM_FI_DEV_GPU_TEMP_CELSIUS"),
    ):
        raw = ask(prometheus, f'{name}{{instance="{host}:9400"}}')
        recorded = ask(prometheus, f'gpuwhy:gpu_temp:celsius{{host="{host}"}}')
        assert len(raw) == len(recorded) == 4


def test_panels_are_what_grafana_takes():
    assert BOARD["schemaVersion"] == SCHEMA_VERSION
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert ids == sorted(set(ids))
    for panel in PANELS:
        assert panel["datasource"]["uid"] == "${DS_PROMETHEUS}"
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["targets"]
    assert {v["name"] for v in BOARD["templating"]["list"]} == {"DS_PROMETHEUS", "host", "gpu"}


def test_no_two_panels_lie_on_each_other():
    taken: dict[tuple[int, int], str] = {}
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, (panel["title"], taken.get((x, y)))
                taken[x, y] = panel["title"]


def test_every_throttle_reason_has_its_own_lane():
    panel = next(p for p in PANELS if p["title"].startswith("Clock event"))
    assert len(panel["targets"]) == len(CATALOGUE.entries["throttle_reasons"])


def test_the_same_knowledge_gives_the_same_bytes():
    assert grafana_dashboard(CATALOGUE) == grafana_dashboard(load_catalogue(strict=False))
