"""Delivery: what the store holds for people is sent, in order, not too fast, and not twice."""

from bot.delivery.messenger import (
    AwayError,
    LimitedError,
    Message,
    Messenger,
    MessengerError,
    RejectedError,
)
from bot.delivery.parcel import Parcel
from bot.delivery.sender import Sender

__all__ = [
    "AwayError",
    "LimitedError",
    "Message",
    "Messenger",
    "MessengerError",
    "Parcel",
    "RejectedError",
    "Sender",
]
