"""The garbage collector runs again, whatever happens while it is held off."""

import gc

import pytest

from engine.collector import held_off


@held_off()
def fails():
    assert not gc.isenabled()
    raise ValueError("no")


def test_it_runs_again_after_an_error():
    assert gc.isenabled()
    with pytest.raises(ValueError, match="no"):
        fails()
    assert gc.isenabled()


def test_a_block_within_a_block_leaves_it_held_off():
    with held_off():
        with held_off():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
