"""The tree as one instant query that finds the entities for which a condition is true.

The result has one element for each such entity, labelled by the profile's entity labels; its
value means nothing. Missing data is absent, as it is in PromQL. A query that cannot say the same
as local evaluation is a superset: it finds more, never less.

Margins that remain, as raw data in a server cannot tell: samples exactly on the edge of a window
(servers differ there); blank samples inside a window (a blank newest sample hides the older
reading that local evaluation takes); an entity none of whose usual series was seen in the last
15 minutes; siblings whose host label differs between their series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.catalogue.types import Catalogue
from engine.condition.bounds import Bound, Numbers
from engine.condition.selectors import LabelProfile, show_query
from engine.condition.single import MIN_PEERS
from engine.condition.spelled import Scope
from engine.condition.tree import (
    And,
    ChangedTo,
    Compare,
    Has,
    IsCode,
    Not,
    Or,
    PastTruth,
    PeerCount,
    Peers,
    Presence,
    Reading,
    Share,
    Truthy,
    needed_by,
    push_not,
    walk,
)

__all__ = ["LabelProfile", "Pushdown", "pushdown", "show_query"]


@dataclass(frozen=True, slots=True)
class Pushdown:
    """A compiled condition. ``exact``: finds the true ones and no others.

    Exactness is meant for windows with two or more samples well inside; without ``exact`` the
    result is a superset.
    """

    query: str
    exact: bool


def pushdown(tree: Truthy, catalogue: Catalogue, profile: LabelProfile) -> Pushdown:
    """Compile a tree for a server that labels its series as the profile says."""
    compiler = _Compiler(tree, catalogue, profile)
    return compiler.truth(tree, compiler.scope)


def narrowing(tree: Truthy, catalogue: Catalogue, profile: LabelProfile) -> Pushdown | None:
    """Compile a tree as `pushdown` does; None where the result would be every entity."""
    compiler = _Compiler(tree, catalogue, profile)
    return compiler.narrowed(tree, compiler.scope)


# What a server may add up in another order than it is done here; a maximum is the same anywhere.
_ADDED_UP = frozenset({"avg", "stddev", "quantile", "rate", "increase"})


def _is_rounded(node: Compare) -> bool:
    return any(
        isinstance(inner, Share | Peers)
        or (isinstance(inner, Reading) and inner.function in _ADDED_UP)
        for inner in walk(node)
    )


class _Compiler(Numbers):
    def truth(self, node: Truthy, scope: Scope) -> Pushdown:
        """Return the query for the entities for which a node is true."""
        found = self.narrowed(node, scope)
        return Pushdown(self.anchor(scope), exact=False) if found is None else found

    def narrowed(self, node: Truthy, scope: Scope) -> Pushdown | None:
        """Return the query, None if every entity must be looked at."""
        match node:
            case Compare():
                return self._compare(node, scope)
            case And(parts=parts):
                return self._all(parts, scope)
            case Or(parts=parts):
                return self._joined("or", parts, scope)
            case PastTruth(operand=operand, offset_s=offset_s):
                earlier = replace(scope, offset_s=scope.offset_s + offset_s)
                return self.narrowed(operand, earlier)
            case Has():
                return self._has(node, scope)
            case IsCode():
                return self._is_code(node, scope)
            case ChangedTo():
                return self._changed_to(node, scope)
            case Presence():
                return self._presence(node, scope)
            case Not(operand=Has() as leaf):
                return self._has(leaf, scope, negated=True)
            case Not(operand=IsCode() as leaf):
                return self._is_code(leaf, scope, negated=True)
            case Not(operand=ChangedTo() as leaf):
                seen = self.windowed("count_over_time", leaf.signal, leaf.window_s, scope)
                return self._any(seen, scope, exact=False)
            case _:
                return None

    def _all(self, parts: Sequence[Truthy], scope: Scope) -> Pushdown | None:
        """Join with `and`; what must be missing is taken away from what the rest finds."""
        missing = [p for p in parts if isinstance(p, Presence) and p.state == "missing"]
        known = [self._any(self.newest(p.signal, scope), scope, exact=True) for p in missing]
        there = [part for part in known if part is not None]
        found = self._joined("and", [p for p in parts if p not in missing], scope)
        if not there:
            return found
        query = self.anchor(scope) if found is None else found.query
        away = "".join(f" unless on({scope.labels}) {part.query}" for part in there)
        return Pushdown(f"({query}{away})", exact=False)

    def _joined(self, word: str, parts: Sequence[Truthy], scope: Scope) -> Pushdown | None:
        found = [self.narrowed(part, scope) for part in parts]
        kept = [part for part in found if part is not None]
        if not kept or (word == "or" and len(kept) < len(found)):
            return None
        exact = len(kept) == len(found) and all(part.exact for part in kept)
        glue = f" {word} on({scope.labels}) "
        query = glue.join(part.query for part in kept)
        return Pushdown(f"({query})" if len(kept) > 1 else query, exact)

    def _any(self, series: str | None, scope: Scope, *, exact: bool) -> Pushdown | None:
        """Return the entities that have any of the series."""
        if series is None:
            return None
        return Pushdown(f"group by ({scope.labels}) ({series})", exact)

    def _compare(self, node: Compare, scope: Scope) -> Pushdown | None:
        inside = replace(scope, names=self.names_of(needed_by(node)))
        left, right = self.number(node.left, inside), self.number(node.right, inside)
        if left is None or right is None:
            return None
        on = "" if left.scalar or right.scalar else f"on({scope.labels}) "
        exact = left.exact and right.exact
        left, right = self._loosened(node, left, right)

        def made(a: str, op: str, b: str) -> str:
            return f"({a} {op} {on}{b})"

        if node.op in {"<", "<="}:
            return Pushdown(made(left.lower, node.op, right.upper), exact)
        if exact or node.op in {">", ">="}:
            return Pushdown(made(left.upper, node.op, right.lower), exact)
        if node.op == "!=":
            return None
        above = made(left.upper, ">=", right.lower)
        below = made(left.lower, "<=", right.upper)
        return Pushdown(f"({above} and on({scope.labels}) {below})", exact)

    def _loosened(self, node: Compare, left: Bound, right: Bound) -> tuple[Bound, Bound]:
        """Move the bounds apart by the profile's slack; the side must not be below zero for it."""
        slack = self.profile.slack
        if not slack or node.op in {"==", "!="} or not _is_rounded(node):
            return left, right
        up, down = repr(1.0 + slack), repr(1.0 - slack)
        above = node.op in {">", ">="}
        if not left.scalar and self.never_negative(node.left):
            upper, lower = f"({left.upper} * {up})", f"({left.lower} * {down})"
            return replace(left, upper=upper) if above else replace(left, lower=lower), right
        if self.never_negative(node.right):
            upper, lower = f"({right.upper} * {up})", f"({right.lower} * {down})"
            return left, replace(right, lower=lower) if above else replace(right, upper=upper)
        return left, right

    def _has(self, node: Has, scope: Scope, *, negated: bool = False) -> Pushdown | None:
        newest = self.newest(node.signal, scope)
        if newest is None:
            return None
        bits = [1 << k for k in range(node.mask.bit_length()) if node.mask >> k & 1]
        chosen, wanted, word = ("min", 0, "and") if negated else ("max", 1, "or")
        tests = [
            f"({chosen} by ({scope.labels}) (floor(({newest}) / {bit}) % 2) == {wanted})"
            for bit in bits
        ]
        query = f" {word} on({scope.labels}) ".join(tests)
        return Pushdown(f"({query})", self.profile.one_series)

    def _is_code(self, node: IsCode, scope: Scope, *, negated: bool = False) -> Pushdown | None:
        newest = self.newest(node.signal, scope)
        if newest is None or not negated:
            return self._one_of(newest, node.codes, scope)
        none = "".join(f" != {code}" for code in sorted(node.codes))
        return self._any(f"({newest}){none}", scope, exact=self.profile.one_series)

    def _one_of(self, series: str | None, codes: frozenset[int], scope: Scope) -> Pushdown | None:
        if series is None:
            return None
        tests = " or ".join(f"({series}) == {code}" for code in sorted(codes))
        return self._any(tests, scope, exact=self.profile.one_series)

    def _changed_to(self, node: ChangedTo, scope: Scope) -> Pushdown | None:
        """Find the entities with a code as large as the smallest asked for.

        Any code of the window may be the one, and PromQL has no test for a set over time; where
        there is one series only, it must also have changed.
        """
        largest = self.windowed("max_over_time", node.signal, node.window_s, scope)
        if largest is None:
            return None
        found = self._any(f"({largest}) >= {min(node.codes)}", scope, exact=False)
        if found is None or not self.profile.one_series:
            return found
        changed = self.windowed("changes", node.signal, node.window_s, scope, scaled=False)
        on = f"on({scope.labels})"
        return Pushdown(f"({found.query} and {on} {self._some(changed, scope)})", exact=False)

    @staticmethod
    def _some(series: str | None, scope: Scope) -> str:
        return f"(max by ({scope.labels}) ({series}) > 0)"

    def _presence(self, node: Presence, scope: Scope) -> Pushdown | None:
        known = self._any(self.newest(node.signal, scope), scope, exact=True)
        if known is None or node.state == "known":
            return known
        everything = self.anchor(scope)
        if node.state == "blank":
            signal = self.catalogue.signals[node.signal]
            if signal.low is None and signal.high is None:
                return None
            seen = self.windowed("last_over_time", node.signal, self.seen_s, scope)
            everything = f"group by ({scope.labels}) ({seen})"
        return Pushdown(f"({everything} unless on({scope.labels}) {known.query})", exact=False)

    def peers(self, node: Peers | PeerCount, scope: Scope) -> Bound | None:
        """Return the bounds of a number over the GPUs of a host or job, or the ports of a rail.

        Computed for each host, job or rail, then given to all its members.
        """
        label = self._label_of(node.group)
        if not label:
            return None
        by = tuple(dict.fromkeys((*self.profile.entity, label)))
        inside = Scope(by, scope.offset_s)
        if node.group == "rail":
            return self._of_rail(node, scope, inside, label)
        if isinstance(node, PeerCount):
            return self._peer_count(node, scope, inside, label)
        found = self.number(node.operand, inside)
        if found is None or not found.known or (node.function == "mad" and not found.exact):
            return None
        lower, upper = (
            self._over_group(node.function, x, label) for x in (found.lower, found.upper)
        )
        return Bound(
            self._for_all(lower, scope, inside, label),
            self._for_all(upper, scope, inside, label),
            found.exact,
        )

    def _label_of(self, group: str) -> str:
        match group:
            case "siblings":
                return self.profile.host
            case "job":
                return self.profile.job
            case _:
                return self.profile.rail

    def _of_rail(
        self, node: Peers | PeerCount, scope: Scope, inside: Scope, label: str
    ) -> Bound | None:
        """Return the lowest and the highest number of all ports of that name.

        Of which kind a host is stands in no label of a port: the number of its kind lies between.
        """
        if isinstance(node, PeerCount) or node.function == "mad":
            return None
        found = self.number(node.operand, inside)
        if found is None:
            return None
        lower = f"min by ({label}) ({found.lower})"
        upper = f"max by ({label}) ({found.upper})"
        return Bound(
            self._for_all(lower, scope, inside, label),
            self._for_all(upper, scope, inside, label),
            exact=False,
            known=False,
        )

    def _over_group(self, function: str, values: str, group: str) -> str:
        if function in {"min", "max"}:
            result = f"{function} by ({group}) ({values})"
        else:
            result = f"quantile by ({group}) (0.5, {values})"
        if function == "mad":
            away = f"abs({values} - on({group}) group_left() {result})"
            result = f"quantile by ({group}) (0.5, {away})"
        return f"({result} and on({group}) count by ({group}) ({values}) >= {MIN_PEERS})"

    def _for_all(self, per_group: str, scope: Scope, inside: Scope, group: str) -> str:
        members = f"{self.anchor(replace(inside, names=scope.names))} * 0"
        spread = f"{members} + on({group}) group_left() {per_group}"
        return f"max by ({scope.labels}) ({spread})"

    def _peer_count(self, node: PeerCount, scope: Scope, inside: Scope, group: str) -> Bound | None:
        true = self.truth(node.operand, inside)
        some = f"count by ({group}) ({true.query})"
        if node.function == "count":
            none = f"count by ({group}) ({self.anchor(inside)}) * 0"
            upper = self._for_all(f"({some} or on({group}) {none})", scope, inside, group)
            lower = upper if true.exact else f"({upper} * 0)"
            return Bound(lower, upper, exact=False, known=False)
        false = self.truth(push_not(node.operand, negate=True), inside)
        if not (true.exact and false.exact):
            return None
        known = f"count by ({group}) ({true.query} or on({inside.labels}) {false.query})"
        part = f"({some} or on({group}) {known} * 0) / on({group}) ({known} >= {MIN_PEERS})"
        text = self._for_all(f"({part})", scope, inside, group)
        return Bound(text, text)
