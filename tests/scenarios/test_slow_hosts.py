"""A GPU is slow because of its host: CPU, memory, network ports, storage, or the quota of its pod.

``tests/data/hosts/hosts.yaml`` says what is read over a quarter of an hour; it becomes a metrics file
with times, under the names that exporters use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.diagnosis.ruletest import readings
from engine.model import Verdict
from engine.sources import FileSource
from tests.support.readings import catalogue, causes, engine
from tests.support.yamlfiles import parse

FILE = Path(__file__).parent.parent / "data" / "hosts" / "hosts.yaml"
SITUATIONS = [
    pytest.param(one, target, id=f"{one['name']}: {target}")
    for one in parse(FILE.read_text(encoding="utf-8"))["situations"]
    for target in one["ask"]
]
# Where node_exporter is scraped: no name of a host, as with a static list of addresses.
ADDRESS = "10.0.0.3:9100"
DEVICE = "10.0.0.9:/export/data"
POD = 'namespace="ml",pod="train-0"'
GPUS = 8


def exposition(situation: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a metrics file, one family after the other."""
    families: dict[str, list[str]] = {}
    for gpu in range(GPUS):
        uuid = f"GPU-{gpu:08x}-0000-4000-8000-000000000000"
        labels = f'gpu="{gpu}",UUID="{uuid}",modelName="NVIDIA H100 80GB HBM3",Hostname="node-3"'
        _add(families, labels + ("," + POD if gpu == 0 else ""), situation["gpus"])
    instance = f'instance="{ADDRESS}"'
    times, _ = readings(1)
    families["node_uname_info"] = [
        f'node_uname_info{{{instance},nodename="node-3.example.com"}} 1 {t:.3f}\n' for t in times
    ]
    _add(families, instance, situation["node"])
    for name, given in situation.get("ports", {}).items():
        device, _, port = name.partition("/")
        labels = f'{instance},device="{device}"' + (f',port="{port}"' if port else "")
        _add(families, labels, given)
    for name, given in situation.get("mounts", {}).items():
        of_mount = f'{instance},device="{DEVICE}",mountpoint="{name}",fstype="nfs4"'
        of_export = f'{instance},export="{DEVICE}",protocol="tcp"'
        for signal, value in given.items():
            labels = of_export if signal.startswith("nfs_") else of_mount
            _add(families, labels, {signal: value})
    _add(families, f'{POD},container="main"', situation.get("pod", {}))
    for lines in families.values():
        yield from lines
    yield "# EOF\n"


def _add(families: dict[str, list[str]], labels: str, given: Mapping[str, Any]) -> None:
    for signal, value in given.items():
        spelling = catalogue().signals[signal].spellings[0]
        matched = {"mode": "user"} if signal == "node_cpu_time" else spelling.match
        every = labels + "".join(f',{name}="{match}"' for name, match in matched.items())
        times, values = readings(value)
        families.setdefault(spelling.name, []).extend(
            f"{spelling.name}{{{every}}} {v / spelling.scale:.12g} {t:.3f}\n"
            for t, v in zip(times, values, strict=True)
        )


@pytest.mark.parametrize(("situation", "target"), SITUATIONS)
async def test_the_host_is_named_where_it_is_the_cause(
    tmp_path: Path, situation: Mapping[str, Any], target: str
) -> None:
    file = tmp_path / "host.om"
    file.write_text("".join(exposition(situation)), encoding="utf-8")
    answer = await engine().why(target, FileSource([file]))
    found = causes(answer)
    first = situation["ask"][target]
    if first is None:
        assert not found
        assert answer.verdict is not Verdict.DEGRADED
        return
    assert found[:1] == [first]
    assert found.count(first) == 1
    assert situation.get("says", "") in answer.diagnoses[0].says
    assert not set(situation.get("never", ())) & set(found)
