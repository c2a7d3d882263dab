"""What holds for all tests."""

import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from engine.readers.guard import Guard

# What a reader raises is a fault that no test may miss.
Guard.strict = True

# A run in the background of a shell inherits "ignore" for interrupts, and so would every process
# that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is, and is no fault of what is tested. The rest
# is as Hypothesis has it, with its own settings for CI.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# The longest tests; what starts last should be short, so that no process ends long after the others.
FIRST = Path(__file__).parent / "scenarios"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: FIRST not in item.path.parents)


# The tests of these files share servers that are started for them, or one profiler: each file is run
# by one process. (The marks of pytest-xdist 3.8 for this have no effect with pytest 9.2.)
TOGETHER = frozenset(
    f"tests/{name}.py"
    for name in (
        "bot/serve/test_watch",
        "engine/capture/test_real_nsys",
        "engine/condition/test_against_prometheus",
        "engine/export/test_grafana",
        "scenarios/test_demo_fleet",
        "scenarios/test_installed_wheel",
        "scenarios/test_watch",
    )
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if file in TOGETHER else nodeid

    return Scheduling(config, log)
