"""Delayed messages: when they are delivered, in which order, and what a crash does to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmqfast import Message
from rmqfast.broker.delay.schedule import ScheduleMessageService, TimeOfDay
from rmqfast.broker.metadata import Metadata
from rmqfast.errors import CorruptError, FlushTimeoutError, RmqError
from rmqfast.store.config import DelayOffsetTable
from rmqfast.store.config.delay_levels import SCHEDULE_TOPIC, DelayLevels
from tests.broker.memory_store import MemoryStore

START = 1_800_000_000_000


class Broker:
    """Its clock is `now`; the service was started at `START`."""

    def __init__(self, root: Path, **options: object) -> None:
        self.root = root
        self.now = START
        self.jumped = 0
        self.store = MemoryStore(lambda: self.now)
        self.options = options
        self.flushed = 0
        self.is_disk_full = False
        self.metadata = Metadata(self.root)
        self.start()

    def start(self) -> None:
        """Forgets what only memory had."""
        self.metadata.close()
        self.metadata = Metadata(self.root)
        self.service = ScheduleMessageService(
            self.metadata,
            self.store,
            self.store.deliver,
            started=self.now,
            time_of_day=TimeOfDay(self.now, steady=lambda: self.now - self.jumped),
            flush=self.flush,
            **self.options,  # type: ignore[arg-type]
        )

    def flush(self) -> None:
        if self.is_disk_full:
            raise RmqError("full")
        self.flushed += 1

    def delay(self, level: int, body: str, **properties: str) -> None:
        given = {"DELAY": str(level)} | properties
        self.store.append(Message("orders", body.encode(), properties=given, queue_id=3), born_host="10.9.9.9:1")

    def run(self, after: int = 0) -> int:
        self.now += after
        return self.service.run_once(self.now)

    def jump(self, milliseconds: int) -> None:
        """Sets the clock, while no time goes by."""
        self.now += milliseconds
        self.jumped += milliseconds

    @property
    def delivered(self) -> list[str]:
        return [one.body.decode() for one in self.store.messages("orders", 3)]


def test_a_message_is_delivered_when_its_time_has_come(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.delay(2, "a", TAGS="t")
    assert [broker.run(after=step) for step in (1000, 3999, 1)] == [0, 0, 0]
    # the look before was less than 100 ms ago
    assert broker.run(after=99) == 1
    (message,) = broker.store.messages("orders", 3)
    assert message.properties == {"DELAY": "2", "TAGS": "t", "REAL_TOPIC": "orders", "REAL_QID": "3"}
    assert (message.born_timestamp, message.store_timestamp) == (START, START + 5099)
    assert str(message.born_host) == "10.9.9.9:1"


@pytest.mark.parametrize("by", [10 * 86_400_000, -3_600_000, 1_500, -1_500])
def test_a_jump_of_the_time_of_day_ends_no_delay_early_nor_late(
    by: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`DeliverDelayedMessageTimerTask` of 4.9.4 looks at the time of day alone, and delivers at once, or late."""
    broker = Broker(tmp_path)
    broker.delay(2, "a")
    broker.run(after=1000)
    broker.delay(2, "b")
    broker.run(after=3000)
    broker.jump(by)
    broker.now += 50
    broker.delay(2, "c")  # stored by the new time before anybody has seen it
    steps = [broker.run(after=step) for step in (50, 800, 100, 900, 100, 2900, 50, 100)]
    assert steps == [0, 0, 1, 0, 1, 0, 0, 1]
    assert broker.delivered == ["a", "b", "c"]
    [line] = (record.getMessage() for record in caplog.records)
    assert line == f"the time of day jumped by {by} ms: messages that were stored before wait as long as before"


def test_jumps_add_up_and_what_is_stored_after_them_goes_by_the_new_time(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.delay(3, "a")
    for by in (86_400_000, -43_200_000, 5_000):
        broker.run(after=1000)
        broker.jump(by)
    broker.run(after=1000)
    broker.run(after=1000)
    broker.delay(3, "b")
    steps = [broker.run(after=step) for step in (4900, 100, 100, 4700, 100, 100)]
    assert (steps, broker.delivered) == ([0, 1, 0, 0, 0, 1], ["a", "b"])


def test_statistics_are_told_what_was_delivered(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    broker = Broker(tmp_path, delivered=lambda *of: told.append(of))
    broker.delay(2, "a")
    broker.delay(1, "b")
    broker.run(after=9000)
    sizes = [one.store_size for one in broker.store.messages("orders", 3)]
    assert told == [("orders", 1, sizes[0]), ("orders", 2, sizes[1])]


def test_statistics_that_fail_deliver_nothing_twice(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fails(topic: str, level: int, size: int) -> None:
        raise ValueError("no statistics")

    broker = Broker(tmp_path, delivered=fails)
    for body in ("first", "second"):
        broker.delay(1, body)
    assert broker.run(after=9000) == 2
    broker.run(after=20_000)
    assert broker.delivered == ["first", "second"]
    assert broker.service.offsets() == {1: 2}
    assert "a delivered message is in no statistics" in caplog.text


def test_the_first_look_is_a_second_after_the_start(tmp_path: Path) -> None:
    broker = Broker(tmp_path, levels=DelayLevels("0s"))
    broker.delay(1, "a")
    assert [broker.run(after=999), broker.run(after=1)] == [0, 1]


def test_an_empty_level_is_looked_at_again_after_100_ms(tmp_path: Path) -> None:
    broker = Broker(tmp_path, levels=DelayLevels("0s"))
    broker.run(after=1000)
    broker.now -= 500
    broker.delay(1, "a")
    broker.now += 500
    broker.store.queues[SCHEDULE_TOPIC, 0] = [
        (at, size, broker.now) for at, size, _ in broker.store.queues[SCHEDULE_TOPIC, 0]
    ]
    assert [broker.run(after=99), broker.run(after=1)] == [0, 1]


def test_a_message_that_cannot_be_stored_holds_up_its_level_for_100_ms(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    for name in "abc":
        broker.delay(1, name)
    broker.delay(2, "other")
    broker.now += 10_000
    broker.store.refusals = [RmqError("full")]
    assert (broker.run(), broker.delivered) == (1, ["other"])
    assert (broker.run(after=99), broker.run(after=1)) == (0, 3)
    assert broker.delivered == ["other", "a", "b", "c"]


def test_what_is_stored_and_not_yet_on_the_disk_is_not_stored_twice(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.delay(1, "a")
    broker.store.refusals = [FlushTimeoutError("slow")]
    assert (broker.run(after=2000), broker.run(after=2000), broker.delivered) == (1, 0, [])


def test_a_level_that_fails_is_left_alone_for_ten_seconds(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker(tmp_path)
    broker.delay(1, "a")
    broker.delay(2, "b")
    units = broker.store.queues[SCHEDULE_TOPIC, 0]
    broker.store.queues[SCHEDULE_TOPIC, 0] = [()]  # type: ignore[list-item]
    assert broker.run(after=6000) == 1
    assert "delay level 1 at offset 0" in caplog.text
    broker.store.queues[SCHEDULE_TOPIC, 0] = units
    assert [broker.run(after=9999), broker.run(after=1)] == [0, 1]


def test_what_cannot_be_read_or_has_no_target_is_passed(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    for name in "abcd":
        broker.delay(1, name)
    half = {"DELAY": "1", "REAL_TOPIC": "RMQ_SYS_TRANS_HALF_TOPIC", "REAL_QID": "0"}
    broker.store.deliver(Message(SCHEDULE_TOPIC, b"half", properties=half))
    broker.store.deliver(Message(SCHEDULE_TOPIC, b"nowhere"))
    broker.delay(1, "last")
    units = broker.store.queues[SCHEDULE_TOPIC, 0]
    del broker.store.records[units[1][0]]
    broker.store.records[units[2][0]] = b"\0" * 100
    assert broker.run(after=2000) == 3
    assert broker.delivered == ["a", "d", "last"]


def test_a_clock_that_is_set_back_before_a_start_delivers_at_once(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.delay(1, "a")
    broker.now -= 3_600_000
    broker.start()
    assert (broker.run(after=1000), broker.delivered) == (1, ["a"])


def test_a_clock_that_is_set_ahead_delivers_at_once(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    for level in range(1, 19):
        broker.delay(level, str(level))
    assert broker.run(after=86_400_000) == 18


def test_a_full_batch_is_followed_by_the_next_at_once(tmp_path: Path) -> None:
    broker = Broker(tmp_path, batch=10)
    for n in range(25):
        broker.delay(1, str(n))
    assert [broker.run(after=5000), broker.run(), broker.run(), broker.run()] == [10, 10, 5, 0]
    assert broker.delivered == [str(n) for n in range(25)]


def test_progress_is_saved_once_the_disk_has_the_messages(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    for name in "abc":
        broker.delay(1, name)
    broker.delay(4, "later")
    broker.run(after=2000)
    assert not (tmp_path / "config" / "delayOffset.json").exists()
    broker.service.persist()
    broker.metadata.write_files()
    assert broker.flushed == 1
    assert dict(DelayOffsetTable.load(tmp_path)) == {1: 3} == broker.service.offsets()
    assert broker.service.running_stats() == {"scheduleMessageOffset_1": "3,3"}


def test_a_disk_that_refuses_keeps_the_old_progress(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.delay(1, "a")
    broker.run(after=2000)
    broker.is_disk_full = True
    with pytest.raises(RmqError, match="full"):
        broker.service.persist()
    assert dict(DelayOffsetTable.load(tmp_path)) == {}


@pytest.mark.parametrize(("saved", "corrected"), [(0, 2), (3, 3), (99, 4), (-5, 2)])
def test_progress_outside_of_the_queue_is_corrected_when_it_is_read(tmp_path: Path, saved: int, corrected: int) -> None:
    broker = Broker(tmp_path)
    for n in range(4):
        broker.delay(1, str(n))
    broker.store.forget(SCHEDULE_TOPIC, 0, 2)
    table = DelayOffsetTable()
    table.commit(1, saved)
    table.commit(7, saved)
    table.commit(40, 8)
    table.save(tmp_path)
    broker.start()
    assert broker.service.offsets() == {1: corrected, 7: saved, 40: 8}
    broker.run(after=3000)
    assert broker.delivered == [str(n) for n in range(corrected, 4)]


def test_what_a_file_of_5_x_says_besides_is_kept(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "delayOffset.json").write_text('{"dataVersion":{"counter":7},"offsetTable":{1:0}}')
    broker = Broker(tmp_path)
    broker.delay(1, "a")
    broker.run(after=2000)
    broker.service.persist()
    broker.metadata.write_files()
    table = DelayOffsetTable.load(tmp_path)
    assert (dict(table), table.other) == ({1: 1}, {"dataVersion": {"counter": 7}})


def test_a_broken_file_is_an_error_and_not_a_beginning(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "delayOffset.json").write_text("{")
    with pytest.raises(CorruptError):
        Broker(tmp_path)
