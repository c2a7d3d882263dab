"""The port every source implements: raw samples in, no opinion about what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from engine.errors import SourceError
from engine.samples import Batch, Matcher, Selection

# One element of an instant vector: its labels and its value.
Element = tuple[Mapping[str, str], float]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What a server answered to some instant queries.

    ``at`` is the moment used (Unix s), ``answers`` holds one vector or error a query, in order;
    ``queries`` counts the requests.
    """

    at: float
    answers: tuple[list[Element] | SourceError, ...]
    queries: int


@runtime_checkable
class Source(Protocol):
    """Where readings come from: a metrics server, metrics files, or exporters read directly.

    Attributes:
        name: what messages call the source, for example ``http://prom:9090``; holds no secrets.
        queries: HTTP requests sent so far, over all calls; 0 for files.
        rereads: True if every call reads everything anew, so that few large calls beat many.
    """

    @property
    def name(self) -> str:
        """What messages call the source."""
        ...

    @property
    def queries(self) -> int:
        """HTTP requests sent so far."""
        ...

    @property
    def rereads(self) -> bool:
        """Whether a call costs the same whatever it asks for."""
        ...

    async def select(self, selections: Sequence[Selection], *, at: float | None) -> Batch:
        """Fetch one wave: everything the selections ask for, sent at the same time.

        A series carries the samples of the closed window ``[at - window_s, at]``, times ascending,
        NaN kept; a series without a sample there is left out. Series are sorted by name and labels.
        A series that several selections match comes once, with the longest of their windows.

        Args:
            selections: what is wanted; an empty ``names`` means every metric the matchers select.
            at: the moment asked about (Unix seconds). None is now for servers and the newest sample
                for files.

        Returns:
            The samples; ``Batch.at`` is the moment used (None: the samples carry no times), and
            ``Batch.queries`` counts the requests of this wave, ``Batch.failed`` names what could
            not be fetched. A warning is given once per source.

        Raises:
            SourceError: nothing could be fetched. If only some of it failed, that is a warning.
            InputError: a file cannot be read.
            UsageError: a matcher is malformed.
        """
        ...

    async def label_sets(
        self,
        names: Sequence[str],
        labels: Sequence[str],
        *,
        at: float | None,
        window_s: float,
        matchers: Sequence[Matcher] = (),
    ) -> list[dict[str, str]]:
        """List the distinct combinations of some labels among series with samples in the window.

        Args:
            names: metric names; empty means every metric the matchers select.
            labels: label names; ``__name__`` stands for the metric name. A label that a series
                lacks is left out of its combination.
            at: as in `select`.
            window_s: how far back (s) a series may have its newest sample.
            matchers: all must hold.

        Returns:
            One dict a combination, sorted by the values in the order of ``labels``. Warnings met on
            the way come with the next `select`.

        Raises:
            SourceError, InputError, UsageError: as in `select`.
        """
        ...

    def take_warnings(self) -> list[str]:
        """Return the warnings that no answer has carried yet, and forget them."""
        ...

    async def aclose(self) -> None:
        """Release connections and temporary files. Safe to call twice."""
        ...


@runtime_checkable
class Evaluator(Protocol):
    """A source that also evaluates PromQL, so that a question can be narrowed down where data is.

    Attributes:
        longest_query: characters that a query may have.
    """

    @property
    def longest_query(self) -> int:
        """Characters that a query may have."""
        ...

    async def evaluate(self, queries: Sequence[str], *, at: float | None) -> Evaluated:
        """Evaluate instant queries, a few at a time.

        Args:
            queries: PromQL, each with a vector as its result.
            at: the moment (Unix s), None for the server's now.

        Returns:
            A vector for each query, or why there is none: one that fails leaves the others.
        """
        ...
