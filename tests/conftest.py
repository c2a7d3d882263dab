"""What holds for all tests."""

import signal
from pathlib import Path

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
