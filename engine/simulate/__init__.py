"""A simulated GPU fleet: exporters with believable readings, and faults planted on purpose.

Used by ``gpuwhy demo``, by tests and by benchmarks. It knows vendor facts only, neither rules nor
signals nor verdicts, so that what it shows is a fair test of them.

    fleet = demo_fleet(seed=0)
    fleet.exposition("node-3", fleet.start + 3600)    # one scrape
    fleet.openmetrics(fleet.start, fleet.start + 3600)  # history for promtool
    async with serve_fleet(fleet, clock=running_clock(fleet.start + 3600)) as served: ...
    fleet.planted, fleet.healthy                      # the ground truth
"""

from engine.simulate.demo import DEMO_SPAN_S, demo_fleet
from engine.simulate.exporter import Profile
from engine.simulate.faults import Fault, Herring, Planted
from engine.simulate.fleet import DEFAULT_START, FAULTS, HERRINGS, Fleet
from engine.simulate.hardware import MODELS, GpuModel
from engine.simulate.serve import Recorded, Served, Target, running_clock, serve_fleet
from engine.simulate.workloads import WORKLOADS

__all__ = [
    "DEFAULT_START",
    "DEMO_SPAN_S",
    "FAULTS",
    "HERRINGS",
    "MODELS",
    "WORKLOADS",
    "Fault",
    "Fleet",
    "GpuModel",
    "Herring",
    "Planted",
    "Profile",
    "Recorded",
    "Served",
    "Target",
    "demo_fleet",
    "running_clock",
    "serve_fleet",
]
