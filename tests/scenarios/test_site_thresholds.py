"""A site sets a threshold of its own in an overlay, without copying a rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.catalogue import load_catalogue
from engine.diagnosis import Engine
from engine.model import Verdict
from tests.support.memory import MemorySource
from tests.support.readings import AT, FULL, causes, engine, gpu

LIMIT = """\
thresholds:
- id: ecc_sbe_count
  title: single-bit ECC errors in 15 minutes that make a storm
  kind: threshold
  text: Our vendor exchanges boards from 20 corrected errors in 15 minutes.
  value: 20
  unit: count
  source: [support contract of the site]
  status: single
"""
# 50 corrected errors in 15 minutes: half of what makes a storm by default.
READINGS = {**FULL, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": {"from": 0, "to": 50}}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    file = tmp_path / "site" / "knowledge" / "thresholds.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(LIMIT)
    return tmp_path / "site"


async def test_a_lower_threshold_of_a_site_changes_the_verdict(site):
    shipped = await engine().why("node-1:0", MemorySource(gpu(READINGS)), at=AT)
    assert shipped.verdict is Verdict.HEALTHY
    assert causes(shipped) == []

    ours = Engine(load_catalogue([site]))
    answer = await ours.why("node-1:0", MemorySource(gpu(READINGS)), at=AT)
    assert answer.verdict is Verdict.DEGRADED
    assert causes(answer) == ["ecc_correctable_storm"]
    (evidence,) = answer.diagnoses[0].evidence
    assert (evidence.value, evidence.threshold, evidence.op) == (50.0, 20.0, ">=")
    assert "50, at least 20" in evidence.says
    assert evidence.source == (
        f"support contract of the site (limit.ecc_sbe_count in {site}/knowledge/thresholds.yaml)"
    )


async def test_the_shipped_threshold_names_the_limit_to_change():
    stormy = {**FULL, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": {"from": 0, "to": 500}}
    answer = await engine().why("node-1:0", MemorySource(gpu(stormy)), at=AT)
    (evidence,) = answer.diagnoses[0].evidence
    assert evidence.threshold == 100.0
    assert evidence.source.startswith("site default: 100 in 15 minutes")
    assert evidence.source.endswith("(limit.ecc_sbe_count)")
