"""The live line of a long cell: when it comes, how often it changes, what it says, and that it goes."""

from __future__ import annotations

import threading

from tensormagic.magic_live import LiveLine
from tensormagic.recording.model import Recording


class Publisher:
    """Keeps what would be displayed."""

    def __init__(self):
        self.published = []

    def publish(self, data, transient, update):
        self.published.append((data["text/plain"], update))


class Ending(threading.Event):
    """A clock without time: each wait is noted and is over at once, until it ends."""

    def __init__(self, rounds):
        super().__init__()
        self.waits, self.rounds, self.went_on = [], rounds, threading.Event()

    def wait(self, timeout=None):
        self.waits.append(timeout)
        if len(self.waits) <= len(self.rounds):
            self.rounds[len(self.waits) - 1]()
            return False
        self.went_on.set()
        return super().wait(10)


def shown(*rounds):
    """What a live line waits for and publishes, where each round of work changes the recording."""
    recording, publisher = Recording(), Publisher()
    ending = Ending([lambda work=work: work(recording) for work in rounds])
    live = LiveLine(publisher, recording, ending)
    assert ending.went_on.wait(10)
    live.end()
    return ending.waits, publisher.published


def nothing(recording):
    """No progress."""


def a_step(recording):
    recording.steps.add(0, 7, 0, 0, -1, 1, 0)


def test_two_seconds_then_at_most_twice_a_second():
    waits, published = shown(nothing, a_step, a_step, nothing)
    assert waits[0] == 2.0 and set(waits[1:]) == {0.5}
    assert [text for text, _ in published] == [
        "tensortrace: no line has begun yet",
        "tensortrace: 1 step · 0 torch calls · no backward run · line 7",
        "tensortrace: 2 steps · 0 torch calls · no backward run · line 7",
        "",  # where nothing changed nothing was published; the panel is given its place
    ]
    assert [update for _, update in published] == [False, True, True, True]


def test_a_short_cell_shows_none():
    waits, published = shown()
    assert (waits, published) == ([2.0], [])
