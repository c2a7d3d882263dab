"""The server's own Prometheus metrics, in a registry of their own.

Labels only take values from short, fixed lists (commands, outcomes, methods): never a target, a
user or a message.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from engine import __version__

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_FAST = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0)
_SLOW = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class Telemetry:
    """Counters and timers of one server.

    Attributes:
        received: questions by surface, command and outcome (`bot.inbound.Outcome`).
        accepting: time from a question's arrival until it is stored (s).
        answers: answers by command and outcome (``ok`` or the code of an error).
        answering: time from the start of the work on a question to its answer (s).
        waiting: time from a question's arrival to the start of the work on it (s).
        deliveries: attempts to send by kind and outcome.
        delivering: time from putting a message in the queue until it is sent (s).
        limited: answers 429 of Slack.
        backlog: rows of the store that wait, by what they are.
        loop_lag: how late the event loop is (s).
        ready: 1 for each dependency that answers.
        requests: HTTP requests by route, method and status.
        sweeps: sweeps of the watch by outcome (``ok`` or the code of an error).
        sweeping: time that a sweep of the watch took (s).
        open_incidents: incidents of the watch that are open.
    """

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self.received = Counter(
            "gpuwhy_questions_received",
            "Questions that came in.",
            ("surface", "command", "outcome"),
            registry=registry,
        )
        self.accepting = Histogram(
            "gpuwhy_accept_seconds",
            "Time until a question was stored.",
            ("surface",),
            buckets=_FAST,
            registry=registry,
        )
        self.answers = Counter(
            "gpuwhy_answers", "Answers given.", ("command", "outcome"), registry=registry
        )
        self.answering = Histogram(
            "gpuwhy_answer_seconds",
            "Time that an answer took.",
            ("command",),
            buckets=_SLOW,
            registry=registry,
        )
        self.waiting = Histogram(
            "gpuwhy_question_wait_seconds",
            "Time that a question waited for a worker.",
            buckets=_SLOW,
            registry=registry,
        )
        self.deliveries = Counter(
            "gpuwhy_deliveries",
            "Attempts to send a message.",
            ("kind", "outcome"),
            registry=registry,
        )
        self.delivering = Histogram(
            "gpuwhy_delivery_seconds",
            "Time that a message waited until it was sent.",
            buckets=_SLOW,
            registry=registry,
        )
        self.limited = Counter(
            "gpuwhy_slack_rate_limited", "Times that Slack asked to wait.", registry=registry
        )
        self.backlog = Gauge(
            "gpuwhy_backlog", "What waits in the store.", ("what",), registry=registry
        )
        self.loop_lag = Gauge(
            "gpuwhy_loop_lag_seconds", "How late the event loop is.", registry=registry
        )
        self.ready = Gauge(
            "gpuwhy_ready", "Whether a dependency answers.", ("dependency",), registry=registry
        )
        self.requests = Counter(
            "gpuwhy_http_requests",
            "HTTP requests.",
            ("route", "method", "status"),
            registry=registry,
        )
        self.sweeps = Counter(
            "gpuwhy_watch_sweeps", "Sweeps of the watch.", ("outcome",), registry=registry
        )
        self.sweeping = Histogram(
            "gpuwhy_watch_sweep_seconds",
            "Time that a sweep of the watch took.",
            buckets=_SLOW,
            registry=registry,
        )
        self.open_incidents = Gauge(
            "gpuwhy_watch_open_incidents", "Incidents that are open.", registry=registry
        )
        Gauge("gpuwhy_build_info", "The version.", ("version",), registry=registry).labels(
            __version__
        ).set(1)

    def text(self) -> bytes:
        """Return everything in Prometheus's text format."""
        return generate_latest(self._registry)
