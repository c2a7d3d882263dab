"""What changes over time: a watch and its incidents.

`engine.history.incidents.advance` says what one look changes, `engine.history.watch.Watcher` looks
on an interval, and a `Book` keeps the state between two looks.
"""

from engine.history.book import Book, Claim, MemoryBook, Record
from engine.history.incidents import Sight, Step, advance
from engine.history.tracked import Event, EventKind, Failure, Holds, Member, State, Tracked
from engine.history.watch import Outcome, Pace, Watcher, watch_name

__all__ = [
    "Book",
    "Claim",
    "Event",
    "EventKind",
    "Failure",
    "Holds",
    "Member",
    "MemoryBook",
    "Outcome",
    "Pace",
    "Record",
    "Sight",
    "State",
    "Step",
    "Tracked",
    "Watcher",
    "advance",
    "watch_name",
]
