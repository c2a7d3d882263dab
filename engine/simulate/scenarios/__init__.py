"""A suite of faults and of healthy noise, as readings with known answers.

    from engine.simulate.scenarios.registry import SCENARIOS
    run = realise(SCENARIOS["power-limit-lowered"], Severity.CLEAR, seed=0)
    run.series, run.at          # readings in memory, and the moment to judge
    openmetrics(run)            # the same as text for ``gpuwhy why --metrics``

A module adds scenarios by listing them in a tuple called ``SCENARIOS``.
"""

from engine.simulate.scenarios.base import AT, Run, Scenario, Severity, openmetrics, realise

__all__ = ["AT", "Run", "Scenario", "Severity", "openmetrics", "realise"]
