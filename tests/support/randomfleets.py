"""Random simulated fleets: any faults, red herrings, models, exporters and workloads."""

from __future__ import annotations

import random

from engine.simulate import FAULTS, HERRINGS, MODELS, WORKLOADS, Fault, Fleet, Herring, Profile

_RAN_S = 3600.0


def random_fleet(seed: int, *, nodes: int = 10, gpus: int = 4) -> tuple[Fleet, float]:
    """Return a fleet and the moment to judge (Unix s): a third of its nodes have something."""
    rng = random.Random(seed)
    at = Fleet(nodes=1).start + _RAN_S
    names = [f"node-{n}" for n in range(nodes)]
    struck = rng.sample(names, nodes // 3)

    def target(node: str, *, whole: bool) -> str:
        return node if whole else f"{node}:{rng.randrange(gpus)}"

    kinds = rng.sample(sorted(FAULTS), len(struck))
    faults = [
        Fault(kind, target(node, whole=FAULTS[kind].node), at - rng.choice([120, 600, 1200, 2400]))
        for kind, node in zip(kinds, struck, strict=True)
    ]
    herrings = [
        Herring(kind, target(rng.choice(names), whole=False), at - rng.choice([60, 900, 3000]))
        for kind in rng.sample(sorted(HERRINGS), 2)
    ]
    fleet = Fleet(
        nodes=nodes,
        gpus=gpus,
        seed=seed,
        models={name: rng.choice(sorted(MODELS)) for name in names},
        workloads=rng.sample(sorted(WORKLOADS), 3),
        profile=_profile(rng),
        profiles={rng.choice(names): _profile(rng) for _ in range(2)},
        faults=faults,
        herrings=herrings,
    )
    return fleet, at


def _profile(rng: random.Random) -> Profile:
    return Profile(
        fields=rng.choice(["full", "full", "stock"]),
        names=rng.choice(["legacy", "legacy", "canonical"]),
        host_label=rng.choice(["Hostname", "hostname", ""]),
        percent=rng.random() < 0.1,
        leak_blanks=rng.random() < 0.2,
        pods=rng.random() < 0.7,
        exported_pod=rng.random() < 0.3,
        xid_absent=rng.random() < 0.3,
    )
