"""The diagnosis engine: reads metrics, evaluates rules, infers and explains causes.

Knows nothing of Slack, terminals or HTTP servers; those live in ``bot``.
"""

__version__ = "0.1.0"
