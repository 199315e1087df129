"""Pages of a topic's messages, in the order of their store times over all queues.

Brokers find messages queue by queue only. A page merges the queues, and its neighbours begin exactly where it ends:
no message is missing between two pages, and none is on both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from rmqfast.admin.admin_client import SLOW, AdminClient
from rmqfast.admin.pulls import PULL_SIZE, check_filter, pull_question, read_pulled
from rmqfast.admin.questions import Question, ask_all, body_of
from rmqfast.admin.topics import status_question, topic_offsets_of_body
from rmqfast.client.instance.api import number_of
from rmqfast.errors import RemotingError, ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode, Response
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.system import monotonic

#: Offset in each queue of a topic: all messages before it are older than those behind it.
Position: TypeAlias = Mapping[MessageQueue, int]
Keeps: TypeAlias = Callable[[Any], bool]
#: Place of a message in the order of a page: store time, broker, queue, offset.
_Key: TypeAlias = tuple[int, str, int, int]
#: Bytes of the messages of a page, but for the first one, and of what is read beside them.
_MOST_BYTES = 32 << 20
#: Queues that are read at a time, as an answer has up to 256 KiB, or one message.
_QUEUES_AT_ONCE = 16
#: Messages in a stretch of a queue that is read backwards. It grows while few messages pass the filter.
_LONGEST_STRETCH = 16_384
#: Pulls of a stretch up to which the next one may be longer: a search is not cut within a stretch.
_FEW_PULLS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class MessagePage:
    """Messages of a topic that follow each other in time.

    Attributes:
        messages: `MessageView`s, oldest first.
        older: Position before them, for `older_than`; `None` if there is nothing older.
        newer: Position behind them, for `newer_than`; `None` if there was nothing newer.
        is_complete: Whether the search was not cut by `seconds`. Otherwise the page may have fewer messages than there
            are, and the search goes on at `older` or `newer`.
        looked_at: Number of messages that were looked at, also by brokers.
        problems: Queues that were not read, and why.
    """

    messages: Sequence[Any]
    older: Position | None
    newer: Position | None
    is_complete: bool
    looked_at: int
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """The first offset of a queue, and the one behind its last message."""

    first: int
    end: int


class _QueueReader(Protocol):
    """Reads a queue in one direction. `found` is in the order of the queue."""

    found: list[Any]
    is_over: bool

    def next_pull(self) -> tuple[int, int]:
        """Returns the offset to pull at, and how many messages."""

    def take(self, messages: Sequence[Any], next_offset: int) -> None:
        """Takes the answer of the pull."""

    @property
    def may_pause(self) -> bool:
        """Whether the search may be cut here."""

    def needs_more(self, last: _Key | None) -> bool:
        """Whether there may be further messages of a page that ends with `last`."""

    def drop_behind(self, last: _Key) -> None:
        """Drops the messages that a page does not reach. Nothing is read behind them."""

    @property
    def edge(self) -> int:
        """Offset up to which the queue was read and kept."""


class _Forward:
    may_pause = True

    def __init__(self, start: int, end: int, since: int) -> None:
        self.found: list[Any] = []
        self.is_over = start >= end
        self.start = self._next = start
        self._end, self._since = end, since

    @property
    def edge(self) -> int:
        return self._next

    def next_pull(self) -> tuple[int, int]:
        return self._next, PULL_SIZE

    def take(self, messages: Sequence[Any], next_offset: int) -> None:
        for message in messages:
            if not self.found and message.store_timestamp < self._since:
                # Brokers find the message nearest to a time, which may be older.
                self.start = message.queue_offset + 1
            elif message.queue_offset < self._end:
                self.found.append(message)
        self._next = min(max(next_offset, self._next + 1), self._end)
        self.is_over = self._next >= self._end

    def needs_more(self, last: _Key | None) -> bool:
        return not self.is_over and (last is None or not self.found or _order(self.found[-1]) < last)

    def drop_behind(self, last: _Key) -> None:
        kept = sum(_order(message) <= last for message in self.found)
        if kept < len(self.found):
            self._next = self.found[kept].queue_offset
            self.is_over = True
            del self.found[kept:]


class _Backward:
    """Reads stretches, each before the last one, as brokers read forward only."""

    def __init__(self, first: int, start: int, count: int) -> None:
        self.found: list[Any] = []
        self._first, self._edge, self._size, self._count = first, start, PULL_SIZE, count
        self._stretch: deque[Any] = deque()
        self._next = self._begin = max(first, start - PULL_SIZE)
        self._is_begun = False
        self._pulls = 0
        self.is_over = start <= first

    @property
    def edge(self) -> int:
        return self._edge

    @property
    def may_pause(self) -> bool:
        return not self._is_begun

    def next_pull(self) -> tuple[int, int]:
        return self._next, min(PULL_SIZE, self._edge - self._next)

    def take(self, messages: Sequence[Any], next_offset: int) -> None:
        self._stretch += [message for message in messages if message.queue_offset < self._edge]
        while len(self._stretch) > self._count or _is_large(self._stretch):
            # It is of an older page, which reads it again.
            self._begin = self._stretch.popleft().queue_offset + 1
        self._pulls += 1
        self._next = max(next_offset, self._next + 1)
        self._is_begun = self._next < self._edge
        if not self._is_begun:
            self._end_stretch()

    def _end_stretch(self) -> None:
        self.found = [*self._stretch, *self.found]
        if self._stretch:
            self._size = PULL_SIZE
        elif self._pulls <= _FEW_PULLS:
            # Where brokers filter, longer stretches save answers; a search by text reads each message here.
            self._size = min(self._size * 4, _LONGEST_STRETCH)
        self._pulls = 0
        self._edge, self._stretch = self._begin, deque()
        self._next = self._begin = max(self._first, self._edge - self._size)
        self.is_over = self._edge <= self._first

    def needs_more(self, last: _Key | None) -> bool:
        return not self.is_over and (last is None or not self.found or _order(self.found[0]) > last)

    def drop_behind(self, last: _Key) -> None:
        dropped = sum(_order(message) < last for message in self.found)
        if dropped:
            self._edge = self.found[dropped - 1].queue_offset + 1
            self.is_over = True
            del self.found[:dropped]


class PageReader:
    """Reads a page of a topic."""

    def __init__(self, client: AdminClient, subscription: SubscriptionData, keeps: Keeps) -> None:
        self._client, self._subscription, self._keeps = client, subscription, keeps
        self._topic = subscription.topic
        self._addresses = dict(client.brokers_of(self._topic))
        self._problems: dict[MessageQueue, str] = {}
        #: Brokers that do not tell their queues, and why.
        self._silent: list[str] = []
        self._bounds = self._read_bounds()
        if not subscription.is_tag_type:
            for name in sorted({queue.broker_name for queue in self._bounds}):
                check_filter(client, self._addresses[name], subscription)

    def _read_bounds(self) -> dict[MessageQueue, QueueBounds]:
        """Returns the bounds of all queues. Raises the error of the first broker if none answers."""
        questions = [status_question(address, self._topic) for address in self._addresses.values()]
        answers = ask_all(self._client.api, questions, seconds=self._client.timeout * SLOW)
        bounds, errors = dict[MessageQueue, QueueBounds](), list[RemotingError]()
        for name, answer in zip(self._addresses, answers, strict=True):
            try:
                rows = topic_offsets_of_body(body_of(answer))
            except RemotingError as error:
                errors.append(error)
                self._silent.append(f"the queues of {name} were not read: {error}")
            else:
                bounds |= {row.queue: QueueBounds(row.min_offset, row.max_offset) for row in rows}
        if errors and len(errors) == len(answers):
            raise errors[0]
        return dict(sorted(bounds.items()))

    def read_older(self, start: Position | None, count: int, seconds: float) -> MessagePage:
        """Returns the last messages before a position; without one, the newest."""
        readers, starts = {}, {}
        for queue, bounds in self._bounds.items():
            starts[queue] = bounds.end if start is None else _within(bounds, start.get(queue, bounds.first))
            readers[queue] = _Backward(bounds.first, starts[queue], count)
        messages, is_complete = self._read(readers, count, seconds, is_backward=True)
        return self._page(messages, _edges(readers), starts, is_complete=is_complete)

    def read_newer(self, start: Position, count: int, seconds: float, *, since: int = 0) -> MessagePage:
        """Returns the first messages at a position and behind it. `since` is the time that was searched for."""
        readers = {
            queue: _Forward(_within(bounds, start.get(queue, bounds.first)), bounds.end, since)
            for queue, bounds in self._bounds.items()
        }
        messages, is_complete = self._read(readers, count, seconds, is_backward=False)
        starts = {queue: each.start for queue, each in readers.items()}
        return self._page(messages, starts, _edges(readers), is_complete=is_complete)

    def position_at(self, time: int) -> Position:
        """Returns the position of a time, in milliseconds since 1970."""
        questions = [
            Question(
                self._addresses[queue.broker_name],
                RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
                # Of several messages of one time, 4.9's brokers may find any: search before it.
                {"topic": queue.topic, "queueId": queue.queue_id, "timestamp": time - 1},
            )
            for queue in self._bounds
        ]
        answers = ask_all(self._client.api, questions, seconds=self._client.timeout * SLOW)
        position = {}
        for (queue, bounds), answer in zip(self._bounds.items(), answers, strict=True):
            try:
                body_of(answer)
            except ResponseError:
                raise
            except RemotingError as error:
                self._note_problem(queue, error)
                position[queue] = bounds.end
            else:
                assert isinstance(answer, Response)  # noqa: S101 - `body_of` raised the errors
                position[queue] = number_of(answer, "offset")
        return position

    def _read(
        self, readers: Mapping[MessageQueue, _QueueReader], count: int, seconds: float, *, is_backward: bool
    ) -> tuple[list[Any], bool]:
        """Returns the messages of a page, oldest first, and whether there was time for all of them."""
        deadline, last = monotonic() + seconds, None
        while unread := self._unread(readers, last):
            for index in range(0, len(unread), _QUEUES_AT_ONCE):
                self._pull({queue: readers[queue] for queue in unread[index : index + _QUEUES_AT_ONCE]})
                last = _drop_surplus(readers.values(), count, last, is_backward=is_backward)
            # Behind a round, so that each page begins further on than the one before.
            if monotonic() >= deadline:
                break
        # Of a stretch that is read backwards, nothing counts before its end.
        while begun := [queue for queue in self._unread(readers, last) if not readers[queue].may_pause]:
            self._pull({queue: readers[queue] for queue in begun})
            last = _drop_surplus(readers.values(), count, last, is_backward=is_backward)
        return _merge(readers.values()), not self._unread(readers, last)

    def _unread(self, readers: Mapping[MessageQueue, _QueueReader], last: _Key | None) -> list[MessageQueue]:
        return [queue for queue, each in readers.items() if queue not in self._problems and each.needs_more(last)]

    def _pull(self, readers: Mapping[MessageQueue, _QueueReader]) -> None:
        places = {queue: reader.next_pull() for queue, reader in readers.items()}
        questions = [
            pull_question(self._addresses[queue.broker_name], queue, offset, self._subscription, max_messages=most)
            for queue, (offset, most) in places.items()
        ]
        answers = ask_all(self._client.api, questions, seconds=self._client.timeout, accepts_all=True)
        for (queue, reader), question, answer in zip(readers.items(), questions, answers, strict=True):
            if isinstance(answer, RemotingError):
                self._note_problem(queue, answer)
                continue
            offset, _ = places[queue]
            tags = frozenset(self._subscription.tags_set)
            try:
                pulled = read_pulled(queue, offset, question.address, answer, tags=tags)
            except ResponseError:
                raise  # refused: no other queue would be read either
            except RemotingError as error:
                self._note_problem(queue, error)
                continue
            reader.take([message for message in pulled.messages if self._keeps(message)], pulled.next_offset)

    def _note_problem(self, queue: MessageQueue, error: RemotingError) -> None:
        self._problems[queue] = f"queue {queue.queue_id} of {queue.broker_name} was not read: {error}"

    def _page(self, messages: Sequence[Any], start: Position, end: Position, *, is_complete: bool) -> MessagePage:
        return MessagePage(
            messages=messages,
            older=start if any(start[queue] > bounds.first for queue, bounds in self._bounds.items()) else None,
            newer=end if any(end[queue] < bounds.end for queue, bounds in self._bounds.items()) else None,
            is_complete=is_complete,
            looked_at=sum(end[queue] - start[queue] for queue in self._bounds),
            problems=[*self._silent, *self._problems.values()],
        )


def _order(message: Any) -> _Key:
    return message.store_timestamp, message.broker_name or "", message.queue_id, message.queue_offset


def _within(bounds: QueueBounds, offset: int) -> int:
    return min(max(offset, bounds.first), bounds.end)


def _is_large(messages: Collection[Any]) -> bool:
    return len(messages) > 1 and sum(message.store_size for message in messages) > _MOST_BYTES


def _edges(readers: Mapping[MessageQueue, _QueueReader]) -> Position:
    return {queue: each.edge for queue, each in readers.items()}


def _merge(readers: Iterable[_QueueReader]) -> list[Any]:
    return sorted((message for each in readers for message in each.found), key=_order)


def _drop_surplus(
    readers: Collection[_QueueReader], count: int, last: _Key | None, *, is_backward: bool
) -> _Key | None:
    """Drops what a page does not hold. Returns the place of its last message; `None` if it is not full.

    `last` is what it returned before: what was dropped then stays behind the page.
    """
    found = _merge(readers)
    if is_backward:
        found.reverse()
    kept = min(count, len(found))
    while _is_large(found[:kept]):
        kept -= 1
    if kept == len(found) < count:
        return last
    last = _order(found[kept - 1])
    for each in readers:
        each.drop_behind(last)
    return last
