"""A history of sends, deliveries and commits, and what contradicts the promises of clients and broker."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

TOPIC = "jepsen"
CONCURRENT, ORDERLY, LITE = GROUPS = ("concurrent", "orderly", "lite")
#: A member begins with a message, is done with it, or hands it back.
BEGIN, END, RETRY = "begin", "end", "retry"
#: Queue and offset.
Place = tuple[int, int]
#: Nanoseconds for which a member holds a lock without asking: `REBALANCE_LOCK_MAX_LIVE_TIME` of Java's client.
_LOCKED_FOR = 30_000_000_000
#: How many of a kind of violation are listed.
_LISTED = 5


class Delivery(NamedTuple):
    """A step of a member with a message.

    Attributes:
        place: Where the message that came stands: of one that was handed back, in the group's topic of retries.
        time: Nanoseconds, by a clock of the whole machine.
    """

    group: str
    what: str
    place: Place
    body: str
    time: int
    member: str


@dataclass(frozen=True)
class Commit:
    """A group's offset in a queue, as the broker told it at a time."""

    group: str
    queue_id: int
    offset: int
    time: int


@dataclass
class History:
    """All that is known of a run.

    Attributes:
        acknowledged: Where the broker said that each message stands.
        unknown: Messages whose send failed: each may be stored or not.
        stored: The body at each place of the topic, read from the store.
        deliveries: What members did, in order of time.
        commits: What the broker told of the groups' offsets meanwhile.
        final_commits: What it told once all members had left.
        broker_starts: When the broker was started again.
    """

    acknowledged: dict[str, Place] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    stored: dict[Place, str] = field(default_factory=dict)
    deliveries: list[Delivery] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    final_commits: list[Commit] = field(default_factory=list)
    broker_starts: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Violation:
    """A promise that was not kept.

    Attributes:
        what: Which.
        count: How often.
        examples: Some of the cases.
    """

    what: str
    count: int
    examples: Sequence[object]

    def __str__(self) -> str:
        return f"{self.what}: {self.count}, as {', '.join(map(str, self.examples))}"


def check(history: History) -> list[Violation]:
    """The promises that a history contradicts; none for a good one."""
    rules: dict[str, Iterable[object]] = {
        "acknowledged and not stored there": _lost(history),
        "stored and never sent": _invented(history),
        "a hole in the offsets of a queue": _holes(history),
        "sent later and stored before": _reordered(history),
        "delivered, and the store has another message there": _altered(history),
        "begun in a queue in order before an earlier message was done": _overtaken(history),
        "worked on by two members of a queue in order at a time": _overlapping(history),
        "committed and not processed": _committed_early(history),
    }
    for group in GROUPS:
        rules[f"{group}: stored and not consumed"] = _unconsumed(history, group)
        rules[f"{group}: consumed and not committed at the end"] = _behind(history, group)
    found = []
    for what, cases in rules.items():
        listed = list(cases)
        if listed:
            found.append(Violation(what, len(listed), listed[:_LISTED]))
    return found


def read_deliveries(files: Iterable[Path]) -> list[Delivery]:
    """The notes of members in order of time, without an unfinished last line."""
    deliveries = []
    for path in files:
        text = path.read_text() if path.exists() else ""
        for line in text[: text.rfind("\n") + 1].splitlines():
            group, what, queue, offset, body, at = line.split()
            deliveries.append(Delivery(group, what, (int(queue), int(offset)), body, int(at), path.name))
    return sorted(deliveries, key=lambda each: each.time)


def _lost(history: History) -> Iterator[object]:
    for body, place in history.acknowledged.items():
        if history.stored.get(place) != body:
            yield body, place, history.stored.get(place)


def _invented(history: History) -> Iterator[object]:
    for place, body in history.stored.items():
        if body not in history.acknowledged and body not in history.unknown:
            yield place, body


def _holes(history: History) -> Iterator[object]:
    for queue, offsets in _by_queue(history.stored).items():
        for offset, expected in zip(offsets, range(len(offsets)), strict=True):
            if offset != expected:
                yield queue, expected
                break


def _reordered(history: History) -> Iterator[object]:
    """Of what one sender sent to a queue, one after the other: bodies are `SENDER-NUMBER`."""
    last: dict[tuple[str, int], tuple[int, int]] = {}
    for body, (queue, offset) in sorted(history.acknowledged.items(), key=lambda item: _number(item[0])):
        sender = body.partition("-")[0], queue
        if offset <= last.get(sender, (-1, -1))[1]:
            yield queue, last[sender], (_number(body), offset)
        last[sender] = _number(body), offset


def _altered(history: History) -> Iterator[object]:
    known = set(history.acknowledged) | history.unknown
    for each in history.deliveries:
        # one that was handed back comes out of another topic
        is_elsewhere = each.group != CONCURRENT and history.stored.get(each.place) != each.body
        if each.body not in known or is_elsewhere:
            yield each


def _unconsumed(history: History, group: str) -> Iterator[object]:
    done = {each.body for each in history.deliveries if each.group == group and each.what == END}
    for place, body in history.stored.items():
        if body not in done:
            yield place, body


def _overtaken(history: History) -> Iterator[object]:
    done: dict[int, set[int]] = defaultdict(set)
    # up to where all is done
    all_done: Counter[int] = Counter()
    for each in history.deliveries:
        if each.group != ORDERLY:
            continue
        queue, offset = each.place
        if each.what == BEGIN and offset > all_done[queue]:
            yield each, all_done[queue]
        if each.what == END:
            done[queue].add(offset)
            while all_done[queue] in done[queue]:
                all_done[queue] += 1


def _overlapping(history: History) -> Iterator[object]:
    """A member that was killed notes no end: what it began last counts as ended when it began.

    Locks of queues are in a broker's memory, here and in RocketMQ. After a broker was started anew, a member that
    had a queue works on until it asks again, and another one may have it meanwhile.
    """
    of_group = [each for each in history.deliveries if each.group == ORDERLY]
    last = {each.member: each for each in of_group}
    working: dict[int, Delivery] = {}
    for each in of_group:
        queue, other = each.place[0], working.get(each.place[0])
        if each.what != BEGIN:
            if other is not None and other.member == each.member:
                del working[queue]
            continue
        is_locked_anew = any(start < each.time < start + _LOCKED_FOR for start in history.broker_starts)
        is_at_work = other is not None and other.member != each.member and last[other.member].time > each.time
        if is_at_work and not is_locked_anew:
            yield other, each
        working[queue] = each


def _committed_early(history: History) -> Iterator[object]:
    """A commit says that all before its offset is processed: done, or handed back."""
    first_done: dict[tuple[str, str], int] = {}
    for each in history.deliveries:
        if each.what == END or (each.what == RETRY and each.group == CONCURRENT):
            first_done.setdefault((each.group, each.body), each.time)
    for commit in (*history.commits, *history.final_commits):
        for offset in range(commit.offset):
            body = history.stored.get((commit.queue_id, offset))
            done = None if body is None else first_done.get((commit.group, body))
            if done is None or done > commit.time:
                yield commit, offset
                break


def _behind(history: History, group: str) -> Iterator[object]:
    committed = {each.queue_id: each.offset for each in history.final_commits if each.group == group}
    for queue, offsets in _by_queue(history.stored).items():
        if committed.get(queue, 0) < offsets[-1] + 1:
            yield f"queue {queue}: {committed.get(queue)} of {offsets[-1] + 1}"


def _by_queue(stored: Mapping[Place, str]) -> dict[int, list[int]]:
    by_queue: dict[int, list[int]] = defaultdict(list)
    for queue, offset in sorted(stored):
        by_queue[queue].append(offset)
    return by_queue


def _number(body: str) -> int:
    return int(body.rpartition("-")[2])
