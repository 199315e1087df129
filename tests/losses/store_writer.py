"""Appends to a harmed store, after a repair if need be: no offset is given twice, and no message is lost."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import count

import rmqfast
from rmqfast import Message
from rmqfast.errors import ArgumentError, CorruptError, DamageWarning, StoreIOError, UnsupportedStoreError
from rmqfast.store import RecoveryReport, find_missing_end, repair
from tests.reference.row import Row
from tests.store.scanned import plain_rows

from .attempt import SilentLoss
from .harmed_store import HarmedStore
from .true_stores import BEGIN

__all__ = ["append_and_judge"]

_REFUSALS = (CorruptError, StoreIOError, UnsupportedStoreError)
_BODY = b"appended to a harmed store"


def append_and_judge(harmed: HarmedStore, harm: str, readable: dict[int, Row]) -> bool:
    """Appends to each queue, opens again, and reads; False where the store refuses by name.

    Args:
        harmed: The store.
        harm: What was done, for the error.
        readable: The messages that a scan gave before, by physical offset.

    Raises:
        SilentLoss: An offset was given twice, a message is gone that was there, or one that was appended.
    """
    clock = count(BEGIN + 10**10, 1000).__next__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        try:
            opening = _opened(harmed)
        except _REFUSALS:
            return False
        with rmqfast.open_store(harmed.path, mode="a", options=harmed.true.options, clock=clock) as store:
            reports = [report for report in (opening, store.recovery) if report is not None]
            given = {}
            for topic, queue_id in _queues(harmed):
                is_delayed = topic == "SCHEDULE_TOPIC_XXXX"
                place = store.append(
                    Message(
                        "orders" if is_delayed else topic,
                        _BODY,
                        delay_level=queue_id + 1 if is_delayed else 0,
                        queue_id=queue_id,
                    )
                )
                given[place.physical_offset] = (topic, queue_id, place.queue_offset)
        _judge_offsets(harmed, harm, given, reports)
        with rmqfast.open_store(harmed.path, mode="a", options=harmed.true.options, clock=clock) as store:
            if store.recovery is not None:
                raise SilentLoss(f"{harm}: a store that was closed was recovered: {store.recovery}")
        _judge_rows(harmed, harm, readable, given, reports)
    return True


def _opened(harmed: HarmedStore) -> RecoveryReport | None:
    """Opens the store to append, or repairs it; returns what that did."""
    path, options = harmed.path, harmed.true.options
    try:
        with rmqfast.open_store(path, mode="a", options=options) as store:
            return store.recovery
    except (CorruptError, ArgumentError) as error:
        # of an index that tells no sizes
        if isinstance(error, ArgumentError) and "rmqfast store repair" not in str(error):
            raise
        missing = find_missing_end(path)
        return repair(path, options=options, cut_at=None if missing is None else missing.log_end)


def _queues(harmed: HarmedStore) -> Iterator[tuple[str, int]]:
    for topic, queues in harmed.true.bounds.items():
        if not topic.startswith("%LMQ%"):
            yield from ((topic, queue_id) for queue_id in queues)


def _judge_offsets(
    harmed: HarmedStore, harm: str, given: dict[int, tuple[str, int, int]], reports: list[RecoveryReport]
) -> None:
    for topic, queue_id, offset in given.values():
        _, end = harmed.true.bounds[topic][queue_id]
        if (
            offset < end
            and harmed.knows(topic, queue_id, offset)
            and not _was_never_flushed(harmed, (topic, queue_id, offset), reports)
        ):
            raise SilentLoss(f"{harm}: offset {offset} of {topic} {queue_id} was given again, which had {end}")


def _was_never_flushed(harmed: HarmedStore, place: tuple[str, int, int], reports: list[RecoveryReport]) -> bool:
    """Whether the messages from an offset on stood at the end of a log that nothing says was flushed, after a crash.

    Recovery cuts the end off behind its last whole record, and says so: nobody had been told that it was stored.
    """
    # a log that goes on in a new file says its end there
    cuts = [min(report.log_end, harmed.written_to - report.cut_bytes) for report in reports if report.cut_bytes]
    if not harmed.was_open or harmed.has_flushed_end or not cuts:
        return False
    topic, queue_id, offset = place
    rows = (row for row in harmed.whole.values() if (row["topic"], row["queue_id"]) == (topic, queue_id))
    return all(row["physical_offset"] >= min(cuts) for row in rows if row["queue_offset"] >= offset)


def _judge_rows(
    harmed: HarmedStore,
    harm: str,
    readable: dict[int, Row],
    given: dict[int, tuple[str, int, int]],
    reports: list[RecoveryReport],
) -> None:
    """All messages that were there are there, and those that were appended; by the log and by queue."""
    with rmqfast.open_store(harmed.path) as store:
        after = {row["physical_offset"]: row for row in plain_rows(store.scan(verify_crc=True).to_arrow())}
        gone = [offset for offset, row in readable.items() if after.get(offset) != row]
        if gone and not any(report.cut_bytes for report in reports):
            raise SilentLoss(
                f"{harm}: {len(gone)} of {len(readable)} messages are gone by an append, the first {gone[0]}"
            )
        for offset, (topic, queue_id, queue_offset) in given.items():
            row = after.get(offset, {})
            got = row.get("topic"), row.get("queue_id"), row.get("queue_offset"), row.get("body")
            if got != (topic, queue_id, queue_offset, _BODY):
                raise SilentLoss(f"{harm}: appended {topic} {queue_id} {queue_offset} at {offset}, got {got}")
            found = store.get(topic, queue_id, queue_offset).messages
            if [message.physical_offset for message in found[-1:]] != [offset]:
                raise SilentLoss(f"{harm}: get({topic!r}, {queue_id}, {queue_offset}) does not give what was appended")
        for topic in {topic for topic, *_ in given.values()}:
            by_queue = (
                store.scan(topic, way="queue", columns=["physical_offset"]).to_arrow()["physical_offset"].to_pylist()
            )
            if missing := {offset for offset, place in given.items() if place[0] == topic} - set(by_queue):
                raise SilentLoss(f"{harm}: a scan by queue of {topic} lacks {missing}, which were appended")
