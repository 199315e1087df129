"""What answers mean for a range: no broker is needed to decide that."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from rmqfast.client.ranges.range_progress import RangeProgress, Verdict, next_step_of
from rmqfast.client.ranges.range_request import QueueRange
from rmqfast.message import MessageQueue

RANGE = QueueRange(MessageQueue("orders", "broker-a", 0), 10, 50)


@dataclass(frozen=True)
class Told:
    """An answer of a broker; `count` messages from `begin_offset` on."""

    status: str = "FOUND"
    begin_offset: int = 10
    next_begin_offset: int = 20
    min_offset: int = 0
    max_offset: int = 100
    is_end: bool = False
    code: int = 0
    remark: str = ""
    count: int = 10

    def __len__(self) -> int:
        return self.count


def progress(*, is_filtered: bool = False) -> RangeProgress:
    return RangeProgress(RANGE, is_filtered=is_filtered, now=0.0)


def test_messages_one_after_the_other_lead_to_the_end() -> None:
    of = progress()
    assert of.take(Told(), 1) == Verdict(has_rows=True)
    assert (of.next, of.is_done, of.stalled(5)) == (20, False, 4)
    last = Told(begin_offset=20, next_begin_offset=50, count=30, is_end=True)
    assert of.take(last, 2) == Verdict(has_rows=True)
    assert of.is_done


def test_an_empty_range_is_done_at_once() -> None:
    assert RangeProgress(RANGE._replace(end=10), is_filtered=False, now=0).is_done


def test_fewer_messages_than_offsets_are_a_loss_unless_a_filter_left_them_out() -> None:
    few = Told(count=7)
    loss = "3 of offsets 10 to 20 are not in the broker's log any more"
    assert progress().take(few, 1) == Verdict(has_rows=True, loss=loss)
    assert progress(is_filtered=True).take(few, 1) == Verdict(has_rows=True)
    removed = Told("NO_MATCHED_MSG", code=20, count=0, next_begin_offset=50, is_end=True)
    assert progress().take(removed, 1).loss.startswith("40 of offsets 10 to 50")


def test_an_offset_that_expired_is_a_loss_up_to_the_first_that_is_there() -> None:
    told = Told("OFFSET_ILLEGAL", code=21, min_offset=30, next_begin_offset=30, count=0)
    of = progress(is_filtered=True)
    assert of.take(told, 1) == Verdict(loss="offsets 10 to 30 have expired, the queue begins at 30", seek=30)
    assert (of.next, of.is_done) == (30, False)
    of = progress()
    assert of.take(replace(told, min_offset=70), 1).loss == "offsets 10 to 50 have expired, the queue begins at 70"
    assert of.is_done


@pytest.mark.parametrize(
    "told",
    [
        Told("OFFSET_ILLEGAL", code=21, min_offset=0, max_offset=5, next_begin_offset=5, count=0),
        Told("OFFSET_ILLEGAL", code=21, min_offset=0, max_offset=0, next_begin_offset=0, count=0),
    ],
)
def test_a_queue_that_ends_before_the_range_is_asked_again_and_is_a_loss_in_the_end(told: Told) -> None:
    of = progress()
    assert of.take(told, 1) == Verdict(seek=10, is_late=True)
    assert (of.ends_early, of.is_done) == (True, False)
    assert of.give_up().loss.startswith(f"offsets 10 to 50: the queue ends at {told.max_offset}")
    assert of.is_done


def test_a_queue_that_grows_again_is_waited_for() -> None:
    of = progress()
    for now, end in ((1, 5), (30, 7), (60, 9)):
        of.take(Told("OFFSET_ILLEGAL", max_offset=end, next_begin_offset=end, count=0), now)
    assert of.stalled(61) == 1
    of.take(Told("OFFSET_ILLEGAL", max_offset=9, next_begin_offset=9, count=0), 70)
    assert of.stalled(80) == 20


def test_nothing_new_before_the_end_is_waited_for() -> None:
    of = progress()
    told = Told("NO_NEW_MSG", code=19, next_begin_offset=10, max_offset=10, count=0)
    assert of.take(told, 3) == Verdict()
    assert (of.ends_early, of.next) == (True, 10)
    assert of.take(Told(), 9) == Verdict(has_rows=True)
    assert not of.ends_early


@pytest.mark.parametrize(
    ("code", "remark"),
    [
        (16, "the topic[orders] pulling message is forbidden"),
        (23, "parse the consumer's subscription failed"),
        (26, "subscription group [g] does not exist"),
        (1, "queueId[9] is illegal, topic:[orders]"),
        (1, "The broker does not support consumer to filter message by SQL92"),
    ],
)
def test_what_will_never_be_otherwise_is_told_at_once(code: int, remark: str) -> None:
    verdict = progress().take(Told("FAILED", code=code, remark=remark, count=0), 1)
    assert verdict.refusal == f"CODE: {code}  DESC: {remark}"


def test_a_refused_account_is_told_at_once_and_without_javas_classes() -> None:
    remark = "org.apache.rocketmq.acl.common.AclException: Check signature failed"
    verdict = progress().take(Told("FAILED", code=1, remark=remark, count=0), 1)
    assert verdict.refusal == "CODE: 1  DESC: Check signature failed"
    assert "secret_key" in next_step_of(verdict.refusal)


@pytest.mark.parametrize(
    ("code", "remark"), [(2, "busy"), (17, "topic[orders] not exist"), (-1, "no answer"), (1, "?")]
)
def test_what_may_be_otherwise_soon_is_tried_again(code: int, remark: str) -> None:
    of = progress()
    assert of.take(Told("FAILED", code=code, remark=remark, count=0), 8) == Verdict()
    assert remark in of.trouble
    assert of.stalled(9) == 9
