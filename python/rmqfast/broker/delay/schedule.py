"""Delivers delayed messages to their topics when they are due.

Source: RocketMQ's `ScheduleMessageService`, `AdminBrokerProcessor`, `ConfigManager`, `SlaveSynchronize`,
`MessageStoreConfig`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from rmqfast.broker.messages.appending import Append, status_of
from rmqfast.broker.messages.stored_message import StoredMessage, in_map_order, message_at
from rmqfast.broker.metadata import Metadata
from rmqfast.broker.topics.topic_manager import HALF_TOPIC
from rmqfast.errors import FlushTimeoutError, RmqError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.remoting import Processor, Request, RequestCode, Response
from rmqfast.remoting.fastjson import encode
from rmqfast.store import LiveStore
from rmqfast.store.config import DelayOffsetTable
from rmqfast.store.config.delay_levels import SCHEDULE_TOPIC, DelayLevels
from rmqfast.system import milliseconds_since_boot

_log = logger_of(__name__)
#: Tolerated difference between the clocks in milliseconds, from slow adjustments and late readings.
_SLACK = 1_000


@dataclass(frozen=True, slots=True)
class Jump:
    """A jump of the system clock.

    Attributes:
        shift: Size in milliseconds, negative if the clock was set back.
        earliest: Earliest possible time of the jump, by the new time.
        noticed: Time when the jump was detected, by the new time.
    """

    shift: int
    earliest: int
    noticed: int

    def came_after(self, store_timestamp: int) -> bool:
        """Whether the clock jumped after a message was stored."""
        return not self.earliest <= store_timestamp <= self.noticed


class TimeOfDay:
    """Detects jumps of the system clock, by comparing it with a monotonic clock.

    Delivery times are stored as times of day, as in RocketMQ, since they must survive a restart. A process that detects
    a jump corrects them.
    """

    def __init__(self, now: int, *, steady: Callable[[], int] = milliseconds_since_boot) -> None:
        self._steady = steady
        self._last = steady()
        self._ahead = now - self._last

    def jump_since_last_call(self, now: int) -> Jump | None:
        """Returns a clock jump of over a second since the last call, and logs it. None if there was no jump."""
        steady = self._steady()
        passed, self._last = steady - self._last, steady
        shift, self._ahead = now - steady - self._ahead, now - steady
        if abs(shift) <= _SLACK:
            return None
        _log.warning("the time of day jumped by %d ms: messages that were stored before wait as long as before", shift)
        return Jump(shift, now - passed - _SLACK, now)


#: Milliseconds, named in `ScheduleMessageService` FIRST_DELAY_TIME, DELAY_FOR_A_WHILE, DELAY_FOR_A_PERIOD.
_FIRST_LOOK = 1_000
_SOON = 100
_AFTER_AN_ERROR = 10_000


class ScheduleMessageService:
    """Delivers delayed messages. Call `run_once` repeatedly, and `persist` every 10 seconds.

    A level is a queue and delivered in order, so a message that cannot be stored delays the ones after it. After a
    kill, messages delivered since the last `persist` are delivered again, and none is lost: `persist` flushes the
    delivered messages before it saves the offsets.
    """

    def __init__(
        self,
        metadata: Metadata,
        live: LiveStore,
        deliver: Append,
        *,
        levels: DelayLevels | None = None,
        started: int,
        flush: Callable[[], None] = lambda: None,
        batch: int = 2_000,
        delivered: Callable[[str, int, int], None] = lambda _topic, _level, _size: None,
        time_of_day: TimeOfDay | None = None,
    ) -> None:
        self._metadata = metadata
        self._live = live
        self._deliver = deliver
        self._flush = flush
        self._batch = batch
        self._delivered = delivered
        self._time_of_day = time_of_day or TimeOfDay(started)
        self._lock = QuietLock()
        self.levels: Final = levels or DelayLevels()
        self._table = metadata.load(DelayOffsetTable)
        self._saved: dict[int, int] = {}
        self._correct()
        # May be ahead of the table after discarded messages, whose offsets need not be saved.
        self._next = {level: self._table.get(level, 0) for level in self.levels}
        self._due = dict.fromkeys(self.levels, started + _FIRST_LOOK)
        #: Clock jumps by level, each with the end of the level's queue at that time.
        self._jumps: dict[int, list[tuple[int, Jump]]] = {level: [] for level in self.levels}

    def run_once(self, now: int) -> int:
        """Delivers due messages, at most one batch per level. Returns their number. Call again after a full batch."""
        jump = self._time_of_day.jump_since_last_call(now)
        if jump is not None:
            self._note(jump)
        return sum(self._run_level(level, now) for level in self.levels if now >= self._due[level])

    def persist(self) -> None:
        """Saves how far each level was delivered, after flushing the delivered messages."""
        # Read before the flush, since messages delivered during the flush may not be on disk.
        offsets = self.offsets()
        self._flush()
        for level, offset in offsets.items() - self._saved.items():
            self._metadata.put(DelayOffsetTable, str(level), offset)
        self._metadata.flush()
        self._saved = offsets

    def take(self, table: DelayOffsetTable) -> None:
        """Replaces the offset of each level by the master's. The next `persist` saves the offsets."""
        with self._lock:
            self._table = table

    def offsets(self) -> dict[int, int]:
        """Returns the next offset to deliver for each level."""
        with self._lock:
            return dict(self._table)

    def running_stats(self) -> dict[str, str]:
        """Returns the next offset to deliver and the queue's end for each level, for `GET_BROKER_RUNTIME_INFO`."""
        ends = {level: self._live.queue_bounds(SCHEDULE_TOPIC, level - 1)[1] for level in self.offsets()}
        return {f"scheduleMessageOffset_{level}": f"{offset},{ends[level]}" for level, offset in self.offsets().items()}

    def _note(self, jump: Jump) -> None:
        """Moves the due times of messages that were stored before a clock jump, so that their delay stays the same."""
        for level, jumps in self._jumps.items():
            jumps.append((self._live.queue_bounds(SCHEDULE_TOPIC, level - 1)[1], jump))
            self._due[level] += jump.shift

    def _run_level(self, level: int, now: int) -> int:
        try:
            count, is_more = self._deliver_due(level, now)
        except Exception:  # noqa: BLE001  # on any error, retry this level later and go on with the others
            _log.exception("delay level %d at offset %d", level, self._next[level])
            self._due[level] = now + _AFTER_AN_ERROR
            return 0
        # After a full batch, more messages may be due.
        self._due[level] = now if is_more else now + _SOON
        return count

    def _deliver_due(self, level: int, now: int) -> tuple[int, bool]:
        """Delivers until a message is not due or cannot be stored. Returns the count, and whether the batch is full."""
        low, high = self._live.queue_bounds(SCHEDULE_TOPIC, level - 1)
        # Retention may have removed the queue's first files since the last run.
        offset = min(max(self._next[level], low), high)
        end, count = min(high, offset + self._batch), 0
        self._jumps[level] = [(jump_end, jump) for jump_end, jump in self._jumps[level] if offset < jump_end]
        while offset < end:
            # The tags code of a delayed message's consume-queue entry is its due time.
            unit = self._live.unit(SCHEDULE_TOPIC, level - 1, offset)
            if unit is None or not self._is_due(level, offset, unit[2], now):
                break
            message = message_at(self._live, unit[0])
            if message is not None and _is_deliverable(message):
                if not self._store(message):
                    break
                # The message is stored: no later error may make it be stored again.
                count += 1
                self._next[level] = offset + 1
                with self._lock:
                    self._table.commit(level, offset + 1)
                self._count(level, message.properties["REAL_TOPIC"], unit[1])
            offset += 1
            self._next[level] = offset
        self._next[level] = offset
        return count, offset == end and offset < high

    def _count(self, level: int, topic: str, delayed_size: int) -> None:
        """Counts a delivery. An error is only logged."""
        try:
            self._delivered(topic, level, delayed_size + len(topic) - len(SCHEDULE_TOPIC))
        except Exception:  # noqa: BLE001  # delivery must go on
            _log.exception("delay level %d: a delivered message is in no statistics", level)

    def _is_due(self, level: int, offset: int, deliver_at: int, now: int) -> bool:
        wait = self.levels[level]
        jumps = (
            jump for jump_end, jump in self._jumps[level] if offset < jump_end and jump.came_after(deliver_at - wait)
        )
        deliver_at += sum(jump.shift for jump in jumps)
        # A due time further away than the level's delay was written by a clock that has been set back since.
        return deliver_at <= now or deliver_at > now + wait

    def _store(self, message: StoredMessage) -> bool:
        properties = message.properties
        try:
            self._deliver(
                message.message(properties["REAL_TOPIC"], int(properties["REAL_QID"]), in_map_order(properties)),
                born_host=message.born_host,
                sys_flag=message.sys_flag,
                reconsume_times=message.reconsume_times,
            )
        # Stored but not yet on disk; another attempt would deliver the message twice.
        except FlushTimeoutError:
            return True
        except RmqError as error:
            _log.warning("a delayed message is not delivered now: %s: %s", status_of(error), error)
            return False
        return True

    def _correct(self) -> None:
        """Moves each offset that is outside its queue to the nearest end of the queue."""
        for level, offset in list(self._table.items()):
            low, high = self._live.queue_bounds(SCHEDULE_TOPIC, level - 1)
            inside = min(max(offset, low), high)
            if level in self.levels and inside != offset and (low, high) != (0, 0):
                _log.error("delay level %d: offset %d is corrected to %d", level, offset, inside)
                self._table.commit(level, inside)


class DelayOffsetProcessor:
    def __init__(self, offsets: Callable[[], Mapping[int, int]]) -> None:
        self._offsets = offsets

    def processors(self) -> dict[int, Processor]:
        return {RequestCode.GET_ALL_DELAY_OFFSET: self.get_all_delay_offset}

    def get_all_delay_offset(self, _request: Request) -> Response:
        return Response(body=encode({"offsetTable": dict(self._offsets())}))


def _is_deliverable(message: StoredMessage) -> bool:
    """Whether a message names a valid queue as its target. The topic of half messages is not allowed."""
    topic, queue_id = message.properties.get("REAL_TOPIC"), message.properties.get("REAL_QID", "")
    if topic and topic != HALF_TOPIC and queue_id.isascii() and queue_id.isdigit():
        return True
    _log.error("a delayed message of %r, queue %r is discarded: %s", topic, queue_id, message.offset_msg_id)
    return False
