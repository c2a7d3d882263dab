"""What the store gives and takes: plain values, one class per table.

All moments are Unix seconds, given by the caller. ``claimed_until`` is 0 while nobody holds a row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from bot.request import Json

JsonObject: TypeAlias = dict[str, Json]


class QuestionState(StrEnum):
    """How far a question has come."""

    RECEIVED = "received"
    WORKING = "working"
    ANSWERED = "answered"
    FAILED = "failed"


class DeliveryKind(StrEnum):
    """How a delivery reaches people."""

    POST = "post"
    UPDATE = "update"
    FILE = "file"
    EPHEMERAL = "ephemeral"
    RESPONSE_URL = "response_url"


class DeliveryState(StrEnum):
    """How far a delivery has come; DEAD is given up."""

    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    DEAD = "dead"


class JobState(StrEnum):
    """How far a job has come; EXPIRED is a plan on which nobody decided in time."""

    PLANNED = "planned"
    APPROVED = "approved"
    DENIED = "denied"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"


class Decision(StrEnum):
    """What policy said to a use."""

    ALLOW = "allow"
    DENY = "deny"


class IncidentState(StrEnum):
    """How far an incident has come; PAST is over: the same thing later is another one."""

    PENDING = "pending"
    OPEN = "open"
    CLOSED = "closed"
    PAST = "past"


class Added(NamedTuple):
    """The id of a question, and whether it was stored by this call or had been before."""

    id: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and its answer once there is one.

    Attributes:
        id: sorts by the time of arrival.
        dedupe_key: the same for every delivery of the same request.
        surface: how it came in.
        actor: who asks, as `bot.request.Actor.to_json` writes it.
        channel: where the answer goes.
        thread: the message under which the answer goes, if any.
        request: what is asked, as `bot.request.Request.to_json` writes it.
        state: how far it has come.
        claimed_by: the worker that has it, or had it last.
        claimed_until: when that worker's lease ends.
        attempts: how often it was claimed; above 1, a worker was lost or gave it back.
        created_at: when it came in.
        answered_at: when it was answered, or failed.
        verdict: the verdict in a word, if the answer has one.
        cause: id of the first cause, if the answer has one.
        answer: the answer with its evidence.
        error: why it failed.
    """

    id: str
    dedupe_key: str
    surface: str
    actor: JsonObject
    channel: str
    thread: str | None
    request: JsonObject
    state: QuestionState
    claimed_by: str | None
    claimed_until: float
    attempts: int
    created_at: float
    answered_at: float | None
    verdict: str | None
    cause: str | None
    answer: JsonObject | None
    error: JsonObject | None


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """Something to be sent.

    Attributes:
        kind: how it is sent.
        channel: deliveries of one channel are sent one at a time, in order.
        payload: what is sent; may hold a response_url, so it is left out of ``repr``.
        thread: the message under which it goes, if any.
        coalesce_key: names the message that is posted or edited. While a delivery of the same name
            has not been sent, a newer one replaces its payload; it keeps its place and its kind, so
            that an edit of a message not yet posted becomes the post.
        not_before: not sent before this moment.
    """

    kind: DeliveryKind
    channel: str
    payload: JsonObject = field(repr=False)
    thread: str | None = None
    coalesce_key: str | None = None
    not_before: float = 0.0


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery in the queue.

    Attributes:
        seq: place in the queue.
        id: opaque id.
        question_id: the question that it belongs to, if any.
        channel: see `NewDelivery`.
        thread: see `NewDelivery`.
        kind: see `NewDelivery`.
        payload: see `NewDelivery`.
        state: how far it has come.
        attempts: how often it was claimed.
        not_before: see `NewDelivery`.
        claimed_by: the sender that has it, or had it last.
        claimed_until: when that sender's lease ends.
        uncertain: an earlier attempt ended without a reply, so it may have been sent already.
        message_ts: id of the message that was made. In a claimed update: of the message to edit,
            which is the newest one sent under the same ``coalesce_key``; None if there is none.
        coalesce_key: see `NewDelivery`.
        created_at: when it was put in the queue.
        sent_at: when it was sent.
        error: why the last attempt failed.
    """

    seq: int
    id: str
    question_id: str | None
    channel: str
    thread: str | None
    kind: DeliveryKind
    payload: JsonObject = field(repr=False)
    state: DeliveryState
    attempts: int
    not_before: float
    claimed_by: str | None
    claimed_until: float
    uncertain: bool
    message_ts: str | None
    coalesce_key: str | None
    created_at: float
    sent_at: float | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Job:
    """A plan, the decision on it, and its result.

    Attributes:
        id: opaque, not to be guessed.
        kind: what is done, for example ``capture``.
        question_id: the question that asked for it, if any.
        plan: what will be done.
        state: how far it has come.
        created_at: when it was planned.
        expires_at: a plan that is not decided by then expires.
        decided_by: who decided, as `bot.request.Actor.to_json` writes it.
        decided_at: when.
        claimed_by: the worker that runs it, or ran it last.
        claimed_until: when that worker's lease ends.
        attempts: how often it was claimed; above 1, a worker was lost and the journal says where.
        finished_at: when it was done or failed.
        result: what came of it.
    """

    id: str
    kind: str
    question_id: str | None
    plan: JsonObject
    state: JobState
    created_at: float
    expires_at: float
    decided_by: JsonObject | None
    decided_at: float | None
    claimed_by: str | None
    claimed_until: float
    attempts: int
    finished_at: float | None
    result: JsonObject | None


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A step of a job, written before it is taken; ``seq`` counts from 1."""

    job_id: str
    seq: int
    step: str
    detail: JsonObject
    at: float


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A use, allowed or not.

    Attributes:
        id: sorts by time.
        at: when.
        actor: who, as `bot.request.Actor.to_json` writes it.
        surface: how it came in.
        command: what was asked for.
        target: on what, as it was written.
        decision: what policy said.
        reason: the permission that decided, or why there is none.
        request_id: the question or job that followed, if any.
    """

    id: str
    at: float
    actor: JsonObject
    surface: str
    command: str
    target: str
    decision: Decision
    reason: str
    request_id: str | None


@dataclass(frozen=True, slots=True)
class StoredIncident:
    """An incident that a watch knows, or knew.

    Attributes:
        id: the same as long as it is the same incident.
        state: how far it has come.
        cause: id of the root cause.
        entity: what it is on.
        opened_at: when it opened first.
        closed_at: when it closed last.
        document: all of it, as `engine.history.codec` writes it.
    """

    id: str
    state: IncidentState
    cause: str
    entity: str
    opened_at: float | None
    closed_at: float | None
    document: JsonObject = field(repr=False)

    def row(self) -> dict[str, object]:
        """Return the columns."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class StoredWatch:
    """A watch that was claimed.

    Attributes:
        due_at: when its look was due; 0 for the first.
        failure: set while looks fail.
        incidents: those that are not over.
    """

    due_at: float
    failure: JsonObject | None
    incidents: tuple[StoredIncident, ...]


class Backlog(NamedTuple):
    """What waits: numbers of rows, and when the oldest came (Unix seconds; None if none waits)."""

    questions: int
    deliveries: int
    oldest_question_at: float | None
    oldest_delivery_at: float | None
