"""PyTorch's Flight Recorder: the last collectives of every rank, from its JSON or pickle dumps.

`pickled` reads pickles without executing them, `dump` makes a record of either form, `judge` lays
the ranks' records beside each other, and `kind` says what that shows.
"""

from engine.traces.flightrecorder.kind import FLIGHT_RECORDER, is_pickle, read_pickle

__all__ = ["FLIGHT_RECORDER", "is_pickle", "read_pickle"]
