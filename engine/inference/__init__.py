"""Inference: which causes follow from the truths of symptoms.

Causes are derived by forward chaining with durable_rules; a plain-Python evaluator of the same
compiled rules is the oracle in tests, and stands in where the library cannot be built.
"""

from engine.inference.inferrer import Derived, Inferrer, make_inferrer

__all__ = ["Derived", "Inferrer", "make_inferrer"]
