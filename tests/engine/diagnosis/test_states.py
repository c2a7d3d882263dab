"""Coverage and inference read the same patterns the same way."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.diagnosis.states import States
from engine.inference import make_inferrer
from engine.model import Truth
from tests.support import packaged

CATALOGUE = packaged.catalogue()
SYMPTOMS = sorted(CATALOGUE.symptoms)
WORDS = {1: Truth.TRUE, 0: Truth.UNKNOWN, -1: Truth.FALSE}


@pytest.fixture(scope="module")
def plain():
    """The causes that depend on symptoms alone."""
    return {
        name: rule
        for name, rule in CATALOGUE.causes.items()
        if not any(ref.startswith("cause/") for p in rule.patterns for ref in p.refs)
    }


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_a_cause_that_can_hold_is_derived_and_no_other(plain, seed, n):
    random = np.random.default_rng(seed)
    drawn = random.choice([1, 0, -1], p=[0.4, 0.2, 0.4], size=(len(SYMPTOMS), n)).astype(np.int8)
    truth = dict(zip(SYMPTOMS, drawn, strict=True))
    states = States(plain, SYMPTOMS).of(truth)
    inferrer = make_inferrer(plain, prefer="reference")
    for i in range(n):
        words = {name: WORDS[int(values[i])] for name, values in truth.items()}
        derived = {d.cause for d in inferrer.infer(words)}
        assert derived == {name for name, state in states.items() if state[i] == 1}
