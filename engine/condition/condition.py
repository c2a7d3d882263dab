"""A compiled condition: one tree and its readers behind one face."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from engine.catalogue.types import Catalogue
from engine.condition import fleet, lacking, single
from engine.condition.explain import Explainer, Term
from engine.condition.hold import held
from engine.condition.memo import Flags, Memo, Truths
from engine.condition.promql import LabelProfile, Pushdown, pushdown, show_query
from engine.condition.sentence import Writer
from engine.condition.tree import (
    PeerCount,
    Peers,
    Truthy,
    attrs_of,
    limits_of,
    reach_s,
    signals_of,
    walk,
)
from engine.errors import UsageError
from engine.samples import Frame

# Up to so many entities plain Python is faster than numpy (measured in benchmarks).
FEW = 12


class Condition:
    """A question about an entity that is true, false or unknown.

    Attributes:
        text: the condition as written.
        tree: its tree, every ``not`` at the leaves.
        signals: the signal ids that it reads.
        attrs: the ``gpu.*`` facts that it reads, without the prefix.
        limits: the thresholds that it compares with (``limit.*``), without the prefix.
        sibling_signals: the signals that it reads of the other GPUs of the host.
        job_signals: the signals that it reads of the other GPUs of the job.
        uses_siblings: whether there are any ``siblings.*`` in it.
        max_window_s: how far back samples are needed (s), offsets of ``past`` included.
    """

    def __init__(self, text: str, tree: Truthy, catalogue: Catalogue) -> None:
        peers = [node for node in walk(tree) if isinstance(node, Peers | PeerCount)]
        self.text = text
        self.tree = tree
        self.signals = frozenset(signals_of(tree))
        self.attrs = frozenset(attrs_of(tree))
        self.limits = frozenset(limits_of(tree))
        near = [node for node in peers if node.group == "siblings"]
        self.sibling_signals = frozenset(s for node in near for s in signals_of(node))
        far = [node for node in peers if node.group == "job"]
        self.job_signals = frozenset(s for node in far for s in signals_of(node))
        self.uses_siblings = bool(near)
        self.max_window_s = float(reach_s(tree))
        self._catalogue = catalogue
        self._signals = signals_of(tree)
        self._one = single.truth(tree)
        self._fleet = fleet.truth(tree)
        self._explainer = Explainer(Writer(catalogue), text)

    @cached_property
    def _lacking(self) -> lacking.OneLack:
        return lacking.of_one(self.tree)

    def __repr__(self) -> str:
        return f"Condition({self.text!r})"

    def evaluate(self, frame: Frame, memo: Memo, only: Sequence[int] | None = None) -> Truths:
        """Judge the entities of a frame at ``frame.at``.

        Args:
            frame: the readings.
            memo: made for this frame; share it between all conditions.
            only: the entities that are asked about, if not all; the others may be left unknown.

        Returns:
            int8[n]: 1 true, 0 unknown, -1 false.

        Raises:
            UsageError: the memo belongs to another frame.
        """
        _check(frame, memo)
        asked = range(len(frame)) if only is None else only
        if len(asked) <= FEW:
            out = np.zeros(len(frame), dtype=np.int8)
            for i in asked:
                out[i] = self._one(memo.one(i, frame.at))
            return out
        with np.errstate(all="ignore"):
            return self._fleet(memo.fleet(frame.at))

    def held(
        self, frame: Frame, memo: Memo, hold_s: float, only: Sequence[int] | None = None
    ) -> Truths:
        """Judge whether the condition has been true for ``hold_s`` seconds, for every entity.

        Returns:
            int8[n]: 1 true at every sample time of its signals in ``[at - hold_s, at]`` and the
            samples cover that span; -1 false now or at one of those times; 0 unknown now, or
            true as far as can be seen but not for the whole span (see `engine.condition.hold`).
        """
        now = self.evaluate(frame, memo, only)
        if hold_s <= 0:
            return now
        out = now.copy()
        for i in np.flatnonzero(now > 0).tolist():
            out[i] = held(self._one, self._signals, memo.one(i, frame.at), hold_s)
        return out

    def truth_at(self, memo: Memo, i: int, at: float) -> int:
        """Judge entity ``i`` at another moment: 1 true, 0 unknown, -1 false."""
        return self._one(memo.one(i, at))

    def explain(self, frame: Frame, i: int, memo: Memo) -> tuple[Term, ...]:
        """Return the comparisons that decided for entity ``i``, in written order."""
        _check(frame, memo)
        return self._explainer.terms(self.tree, memo.one(i, frame.at))

    def missing(self, frame: Frame, i: int, memo: Memo) -> frozenset[str]:
        """Return what is lacking for entity ``i``: signal ids, and ``gpu.NAME`` for facts.

        Empty if the condition is not unknown. Of alternatives (``coalesce``) all are named.
        """
        _check(frame, memo)
        return frozenset(self._lacking(memo.one(i, frame.at)))

    def lacking(self, frame: Frame, memo: Memo, unknown: Flags) -> dict[str, Flags]:
        """Return the same for many entities: for each name of `missing`, who lacks it.

        Args:
            frame: the readings.
            memo: made for this frame.
            unknown: bool[n], the entities asked about: some of those for which this is unknown.

        Returns:
            bool[n] for each name that any of them lacks.
        """
        _check(frame, memo)
        if not unknown.any():
            return {}
        with np.errstate(all="ignore"):
            return lacking.of_fleet(self.tree)(memo.fleet(frame.at), unknown)

    def promql(self, profile: LabelProfile) -> Pushdown:
        """Return the instant query whose result holds every entity for which this is true."""
        return pushdown(self.tree, self._catalogue, profile)

    def query_for(self, frame: Frame, i: int, term: Term) -> str:
        """Return PromQL that shows the reading of a term, empty if its origin is not known."""
        origin = frame.origins.get((term.signal, i))
        if origin is None:
            return ""
        return show_query(origin, term.function, term.window_s, q=term.q, offset_s=term.offset_s)

    def sentence(self) -> str:
        """Say the condition in English, units included, without a full stop."""
        return Writer(self._catalogue).sentence(self.tree)


def _check(frame: Frame, memo: Memo) -> None:
    if memo.frame is not frame:
        msg = "the memo belongs to another frame"
        raise UsageError(msg, hint="make one Memo for each frame")
