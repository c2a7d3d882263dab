"""The condition language: one text, one tree, three readers (evaluation, PromQL, sentence).

    condition = compile_condition('avg(sm_active, "5m") < 0.5', catalogue, place)
    memo = Memo(frame)                      # shared by all conditions on this frame
    condition.evaluate(frame, memo)         # int8[n]: 1 true, 0 unknown, -1 false
    condition.promql(LabelProfile()).query  # preselects in the metrics server
    condition.sentence()                    # "average SM activity over 5 minutes is below 50 %"

Three-valued (Kleene) throughout: a number that cannot be had is unknown, and so is every
comparison with it. Windows are closed at both ends: ``[at - w, at]``.
"""

from __future__ import annotations

from engine.catalogue.types import Catalogue, Place
from engine.condition.condition import Condition
from engine.condition.explain import Term
from engine.condition.memo import Memo
from engine.condition.parse import parse
from engine.condition.promql import LabelProfile, Pushdown, show_query

__all__ = [
    "Condition",
    "LabelProfile",
    "Memo",
    "Pushdown",
    "Term",
    "compile_condition",
    "show_query",
]


def compile_condition(text: str, catalogue: Catalogue, place: Place) -> Condition:
    """Compile a condition.

    Args:
        text: the condition as written.
        catalogue: knows the signals, mask bits, codes and GPU attributes.
        place: where the first character of the text stands.

    Raises:
        CatalogueError: the text is no condition over this catalogue; the problem names file,
            line and column of the token, what is wrong, and what to write instead.
    """
    return Condition(text, parse(text, catalogue, place), catalogue)
