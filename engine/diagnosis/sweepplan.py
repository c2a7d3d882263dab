"""Which questions a sweep asks a server, given the rules and what the server holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from engine.catalogue.types import Catalogue
from engine.condition.prune import prune
from engine.condition.tree import ChangedTo
from engine.diagnosis import sweepchecks as checks
from engine.diagnosis import sweepqueries as queries
from engine.diagnosis.judge import Judge
from engine.diagnosis.preselect import Idle, Need, idle_of, needs_of, reduced
from engine.diagnosis.sweepnodes import Nodes
from engine.diagnosis.sweepqueries import Bit, Known


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked about the GPUs of a roster, and what the answers mean.

    Attributes:
        bits: the questions.
        needs: what makes a GPU suspicious, by the names of questions and of symptoms of nodes.
        resting: what makes one idle; its symptoms are asked as `idle_bit`.
        settled: symptoms of ``resting`` that are known without asking.
    """

    bits: tuple[Bit, ...]
    needs: tuple[Need, ...]
    resting: Idle
    settled: Mapping[str, bool]


def idle_bit(symptom: str) -> str:
    """Return the name of the question that decides on idleness."""
    return f"idle {symptom}"


def plan(judge: Judge, names: Collection[str], known: Known, nodes: Nodes) -> Plan | None:
    """Return what to ask.

    Args:
        judge: the rules.
        names: metric names that are fetched of a GPU.
        known: what the server holds.
        nodes: what was asked of nodes.

    Returns:
        None if the server cannot tell anybody from the others: then all must be looked at.
    """
    # Who lacks what is judged by the samples; of a model that is not known, who has no yardstick.
    core = (*judge.core, judge.yardsticks) if known.strange and judge.yardsticks else judge.core
    lacking = checks.lacks(core, known)
    suspects = _suspects(judge, known, nodes)
    resting = _resting(judge, known)
    if lacking is None or suspects is None or resting is None:
        return None
    asked, needs = suspects
    how, settled, idle_bits = resting
    read = {s for name in asked for s in judge.observer.conditions[name].signals}
    read |= {s for name in how.symptoms for s in judge.observer.conditions[name].signals}
    read |= {s for group in judge.core for s in group} | _ratios(known.catalogue, names)
    own = {s for s in read if known.catalogue.signals[s].scope == "gpu"}
    alone = [
        lacking,
        checks.doubled(judge.core, known),
        *checks.sliced(judge.core, known),
        *checks.counted_events(known),
        *checks.no_readings(own, known),
    ]
    alone += [bit for bit in idle_bits if not bit.exact]
    bits, needs = _merged(judge, known, asked, needs)
    needs += [Need(frozenset({bit.name})) for bit in alone]
    every = {bit.name: bit for bit in [*bits, *alone, *idle_bits]}
    single = {name for need in needs if len(need.symptoms) == 1 for name in need.symptoms}
    # Questions that few GPUs answer go together, so that few GPUs are in the answer.
    ordered = sorted(every.values(), key=lambda bit: bit.name not in single)
    return Plan(tuple(ordered), tuple(needs), how, settled)


def _suspects(judge: Judge, known: Known, nodes: Nodes) -> tuple[dict[str, Bit], list[Need]] | None:
    """Return the symptoms to ask for and what makes a GPU suspicious; None if everything does."""
    never = {name for name, value in nodes.settled.items() if not value}
    untold = {name for name, value in nodes.settled.items() if value} | nodes.untold
    at_nodes = set(nodes.asked.may_be) if nodes.asked else set()
    bits: dict[str, Bit] = {}
    for name, condition in judge.observer.conditions.items():
        if name in never | untold | at_nodes:
            continue
        bit = queries.symptom(name, condition, known, loose=True)
        if isinstance(bit, Bit):
            bits[name] = bit
        else:
            (never if bit is False else untold).add(name)
    compared = {name for name, bit in bits.items() if bit.compares}
    needs = reduced(needs_of(judge.causes, compared), frozenset(never), frozenset(untold))
    if needs is None:
        return None
    wanted = frozenset().union(*(need.symptoms for need in needs))
    return {name: bit for name, bit in bits.items() if name in wanted}, needs


def _resting(judge: Judge, known: Known) -> tuple[Idle, dict[str, bool], list[Bit]] | None:
    """Return how to tell idle GPUs, what of it is settled, and what must be asked."""
    how = idle_of(judge.causes)
    if how is None:
        return None
    settled: dict[str, bool] = {}
    bits: list[Bit] = []
    for name in sorted(how.symptoms):
        bit = queries.symptom(name, judge.observer.conditions[name], known, loose=False)
        if bit is None:
            return None
        if isinstance(bit, bool):
            settled[name] = bit
        else:
            exact = bit.exact and not judge.observer.rules[name].hold_s
            bits.append(Bit(idle_bit(name), bit.compile, exact))
    return how, settled, bits


def _ratios(catalogue: Catalogue, names: Collection[str]) -> set[str]:
    """Return the ratios that are fetched: one of them tells that an exporter writes percent."""
    return {
        signal.id
        for signal in catalogue.signals.values()
        if signal.unit == "ratio" and any(sp.name in names for sp in signal.spellings)
    }


def _merged(
    judge: Judge, known: Known, asked: Mapping[str, Bit], needs: Iterable[Need]
) -> tuple[list[Bit], list[Need]]:
    """Ask once whether a code changed to any of all codes that make a GPU suspicious by itself."""
    bits, kept = dict(asked), list(needs)
    codes: dict[tuple[str, int], set[int]] = {}
    for need in list(kept):
        (name, *more) = need.symptoms
        tree = prune(judge.observer.conditions[name].tree, known.present)
        if more or not isinstance(tree, ChangedTo):
            continue
        codes.setdefault((tree.signal, tree.window_s), set()).update(tree.codes)
        kept.remove(need)
        if not any(name in other.symptoms for other in kept):
            bits.pop(name, None)
    for (signal, window_s), all_ in sorted(codes.items()):
        tree = ChangedTo(signal, frozenset(all_), window_s)
        bit = queries.of_tree(f"change of {signal} in {window_s} s", tree, known, loose=True)
        assert bit is not None, "each of its codes could be asked for"
        bits[bit.name] = bit
        kept.append(Need(frozenset({bit.name})))
    return list(bits.values()), kept
