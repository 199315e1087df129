"""What follows from facts: no broker, no time, a table of values."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rmqfast.admin import (
    ConsumerRunningInfo,
    CopyFacts,
    CopyKind,
    GroupFacts,
    MemberFacts,
    MessageFacts,
    Outcome,
    ProcessQueueInfo,
    QueueFacts,
    SqlAnswer,
)
from rmqfast.admin.backlog import group_sentences, queue_explanation
from rmqfast.admin.facts import names_in
from rmqfast.admin.filters import passes_broker, passes_member
from rmqfast.admin.next_step import next_step
from rmqfast.admin.outcome import Verdict, traced_verdict, verdict_of
from rmqfast.client.trace import TraceType, TraceView
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

from .members import wants

GOLDEN = Path(__file__).parents[1] / "golden"
QUEUE = MessageQueue("t", "b", 0)
UNKNOWN = "the offset has passed it, and whether anybody processed it is not known: "
RETRY, DELAYED, DEAD = (
    MessageQueue("%RETRY%g", "b", 0),
    MessageQueue("SCHEDULE", "b", 2),
    MessageQueue("%DLQ%g", "b", 0),
)


def message(tags: str | None = "TagA", offset: int = 3, stored: int = 9000) -> MessageFacts:
    return MessageFacts(queue=QUEUE, queue_offset=offset, msg_id="ID", tags=tags, store_timestamp=stored)


def member(name: str, expression: str, *numbers: int, version: int = 1) -> MemberFacts:
    held = [MessageQueue("t", "b", number) for number in numbers]
    return MemberFacts(client_id=name, subscription=wants("t", expression, version), queues=held)


def group(kept: str | None, *members: MemberFacts, version: int = 1) -> GroupFacts:
    subscription = None if kept is None else wants("t", kept, version)
    return GroupFacts(group="g", members=members, subscription=subscription)


def queue(consumer: int | None = 7, owner: str | None = "A", low: int = 0, high: int = 7) -> QueueFacts:
    return QueueFacts(queue=QUEUE, min_offset=low, max_offset=high, consumer_offset=consumer, owner=owner)


A_A, B_B = member("A", "TagA", 0), member("B", "TagB", 1, version=2)
CONFLICT = group("TagB", A_A, B_B, version=2)


@pytest.mark.parametrize(
    ("facts", "outcome", "sentence"),
    [
        (
            (message(), queue(), group("TagA", A_A)),
            Outcome.CONSUMED,
            "passed by the offset, delivered to A, which wants TagA, and never sent back",
        ),
        (
            (message("TagB"), queue(), CONFLICT),
            Outcome.LOST,
            "passed by the offset, delivered to A, dropped by A's tag check: nobody processed it",
        ),
        (
            (message("TagB"), queue(owner="B"), CONFLICT),
            Outcome.CONSUMED,
            "passed by the offset, delivered to B, which wants TagB, and never sent back",
        ),
        (
            (message("TagA"), queue(), CONFLICT),
            Outcome.LOST,
            (
                "passed by the offset, filtered by the broker: its tag TagA is not in the group's subscription TagB "
                "(set by member B at 1970-01-01 00:00:00.002Z), though A subscribed to it: nobody processed it"
            ),
        ),
        (
            (message("TagC"), queue(), CONFLICT),
            Outcome.FILTERED,
            (
                "passed by the offset, filtered by the broker: its tag TagC is not in the group's subscription TagB "
                "(set by member B at 1970-01-01 00:00:00.002Z): nobody processed it"
            ),
        ),
        (
            (message(None), queue(), group("TagA", A_A)),
            Outcome.FILTERED,
            (
                "passed by the offset, filtered by the broker: having no tag, it is not in the group's subscription "
                "TagA (set by member A at 1970-01-01 00:00:00.001Z): nobody processed it"
            ),
        ),
        (
            (message(), queue(consumer=3), group("*", member("A", "*", 0))),
            Outcome.NOT_CONSUMED_YET,
            "the group's offset has not passed it: 3 of 7, 4 behind, owner A",
        ),
        (
            (message(), queue(consumer=None, low=2), group("*", member("A", "*", 0))),
            Outcome.NOT_CONSUMED_YET,
            "the group's offset has not passed it: none of 7, 5 behind, owner A",
        ),
        (
            (message(), queue(consumer=3, owner=None), group(None)),
            Outcome.NOT_CONSUMED_YET,
            "the group's offset has not passed it: 3 of 7, 4 behind, owner nobody",
        ),
        (
            (message(), queue(consumer=3, owner=None), group("*", member("A", "*", 1))),
            Outcome.NOT_CONSUMED_YET,
            "the group's offset has not passed it: 3 of 7, 4 behind, owner nobody yet",
        ),
        (
            (message(), queue(consumer=2, low=5), group("*", member("A", "*", 0))),
            Outcome.EXPIRED,
            "the queue begins at offset 5 now, and the group had not passed it",
        ),
        (
            (message(), queue(consumer=0, owner=None), replace(group(None), has_offsets=True)),
            Outcome.NOT_CONSUMED_YET,
            "the group's offset has not passed it: 0 of 7, 7 behind, owner nobody",
        ),
        (
            (message(), queue(consumer=0, owner=None), group(None)),
            Outcome.UNKNOWN,
            "the group has no offset here, or 0, and no member is online to tell whether the group broadcasts",
        ),
        (
            (message(), queue(owner=None), group(None)),
            Outcome.UNKNOWN,
            UNKNOWN + "nobody of the group g is online, and with it goes its subscription",
        ),
        (
            (message(), queue(), group(None, MemberFacts(client_id="A"))),
            Outcome.UNKNOWN,
            UNKNOWN + "the group g does not subscribe to t now",
        ),
        (
            (message("TagB"), queue(owner=None), CONFLICT),
            Outcome.UNKNOWN,
            UNKNOWN + "nobody is known to have the queue, and members want different things",
        ),
        (
            (message("TagA"), queue(owner=None), group("TagA", member("A", "TagA", 1), member("B", "TagA", 2))),
            Outcome.CONSUMED,
            "passed by the offset, delivered to a member, which wants TagA, and never sent back",
        ),
    ],
)
def test_an_outcome_follows_from_facts(
    facts: tuple[MessageFacts, QueueFacts, GroupFacts], outcome: Outcome, sentence: str
) -> None:
    verdict = verdict_of(*facts)
    assert (verdict.outcome, verdict.sentences[0]) == (outcome, sentence)


@pytest.mark.parametrize(
    ("copies", "outcome", "sentence"),
    [
        (
            [(CopyKind.DELAYED, DELAYED, 0, 2, 5000, None)],
            Outcome.IN_RETRY,
            "the second retry is due at 1970-01-01 00:00:05.000Z",
        ),
        (
            [(CopyKind.RETRY, RETRY, 4, 1, None, 4)],
            Outcome.IN_RETRY,
            "the first retry waits in %RETRY%g queue 0 offset 4: the group is at 4",
        ),
        (
            [(CopyKind.RETRY, RETRY, 4, 1, None, 5), (CopyKind.DELAYED, DELAYED, 0, 2, None, None)],
            Outcome.IN_RETRY,
            "the second retry is due at a time that is not known",
        ),
        (
            [(CopyKind.RETRY, RETRY, 4, 1, None, 5), (CopyKind.RETRY, RETRY, 5, 2, None, 6)],
            Outcome.CONSUMED,
            "the group has passed the second retry, %RETRY%g queue 0 offset 5",
        ),
        (
            [(CopyKind.RETRY, RETRY, 4, 1, None, 5), (CopyKind.DEAD, DEAD, 0, 16, None, None)],
            Outcome.DEAD_LETTER,
            ("consumed in vain 16 times, %DLQ%g offset 0 since 1970-01-01 00:00:09.000Z; the group g gets it no more"),
        ),
    ],
)
def test_what_was_sent_back_tells_more_than_the_offset(
    copies: Sequence[tuple[CopyKind, MessageQueue, int, int, int | None, int | None]], outcome: Outcome, sentence: str
) -> None:
    facts = [
        copied(kind, at, o, n, due_timestamp=due, consumer_offset=consumer) for kind, at, o, n, due, consumer in copies
    ]
    verdict = verdict_of(message(), queue(), group("TagA", A_A), facts, group("*", member("A", "*")))
    assert (verdict.outcome, list(verdict.sentences)) == (outcome, [sentence])


def copied(kind: CopyKind, at: MessageQueue, offset: int, times: int, stored: int = 9000, **more: Any) -> CopyFacts:
    return CopyFacts(kind=kind, queue=at, queue_offset=offset, reconsume_times=times, store_timestamp=stored, **more)


def test_a_next_step_can_be_pasted_into_a_shell() -> None:
    """Ids of messages are what producers made of them."""
    hostile = replace(message(stored=1 << 62), msg_id="x; rm -rf ~")
    step = next_step(Verdict(Outcome.DEAD_LETTER, []), hostile, group(None))
    assert step == "mend what fails, then: rmqfast group resend g --id 'x; rm -rf ~'"
    step = next_step(Verdict(Outcome.SKIPPED, []), message(stored=9000), group(None))
    assert (step or "").endswith("rmqfast group reset g t --to 1970-01-01T00:00:09")


def test_a_dead_letter_that_was_sent_again_is_no_longer_dead() -> None:
    dead = copied(CopyKind.DEAD, DEAD, 0, 16)
    again = copied(CopyKind.RETRY, RETRY, 7, 0, 9500, consumer_offset=7)
    assert verdict_of(message(), queue(), group("TagA", A_A), [dead, again]).outcome is Outcome.IN_RETRY
    late = copied(CopyKind.DEAD, DEAD, 1, 16, 9900)
    assert verdict_of(message(), queue(), group("TagA", A_A), [dead, again, late]).outcome is Outcome.DEAD_LETTER


@pytest.mark.parametrize("retry_group", [None, group(None), group("*", member("A", "*", version=9500), version=9500)])
def test_a_retry_that_is_passed_is_consumed_only_if_nothing_else_can_have_passed_it(
    retry_group: GroupFacts | None,
) -> None:
    copy = copied(CopyKind.RETRY, RETRY, 4, 1, consumer_offset=5)
    verdict = verdict_of(message(), queue(), group("TagA", A_A), [copy], retry_group)
    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.sentences[0].endswith("members have come or gone since, or the offset was reset")


def test_a_dead_letter_of_an_orderly_consumer_is_dead_before_its_delay_is_over() -> None:
    copy = copied(CopyKind.DEAD, DELAYED, 0, 3, due_timestamp=9500)
    told = verdict_of(message(), queue(), group("TagA", A_A), [copy])
    text = "consumed in vain 3 times, a dead letter from 1970-01-01 00:00:09.500Z on; the group g gets it no more"
    assert (told.outcome, told.sentences) == (Outcome.DEAD_LETTER, [text])


@pytest.mark.parametrize(("clock_error", "outcome"), [(999, Outcome.CONSUMED), (1001, Outcome.UNKNOWN)])
def test_clocks_that_may_be_apart_leave_it_open(clock_error: int, outcome: Outcome) -> None:
    whole = replace(group("TagA", member("A", "TagA", 0, version=8000), version=8000), clock_error=clock_error)
    verdict = verdict_of(message(stored=9000), queue(), whole)
    assert verdict.outcome is outcome
    assert ("the clock of a member may be behind" in verdict.sentences[0]) == (outcome is Outcome.UNKNOWN)


def test_a_member_that_does_not_answer_is_named() -> None:
    silent = MemberFacts(client_id="A", problem="CODE: 207  DESC: Timeout")
    verdict = verdict_of(message("TagB"), queue(owner=None), group("TagB", silent, B_B, version=2))
    assert verdict.outcome is Outcome.UNKNOWN
    assert "A may have got it and does not tell what it wants" in verdict.sentences[0]
    assert verdict.sentences[-1] == "not known: what A wants and has: CODE: 207  DESC: Timeout"


NEWER = (
    UNKNOWN + "the group's subscription {} (of 1970-01-01 00:00:09.500Z) is newer than the message (of "
    "1970-01-01 00:00:09.000Z)"
)


@pytest.mark.parametrize(
    ("tags", "members", "kept", "today"),
    [
        ("TagA", (member("A", "TagA", 0, version=9500),), "TagA", "today A would get it, which wants TagA"),
        (
            "TagB",
            (member("A", "TagA", 0, version=9500),),
            "TagA",
            (
                "today the broker would filter it: its tag TagB is not in the group's subscription TagA (set by member "
                "A at 1970-01-01 00:00:09.500Z)"
            ),
        ),
        (
            "TagB",
            (A_A, member("B", "TagB", 1, version=9500)),
            "TagB",
            (
                "today A's tag check would drop it: its tag TagB is not in A's own subscription TagA, while the broker "
                "filters by TagB for the whole group, set by B"
            ),
        ),
    ],
)
def test_members_that_changed_since_the_message_do_not_decide(
    tags: str, members: tuple[MemberFacts, ...], kept: str, today: str
) -> None:
    verdict = verdict_of(message(tags, stored=9000), queue(), group(kept, *members, version=9500))
    assert verdict.outcome is Outcome.UNKNOWN
    assert list(verdict.sentences) == [NEWER.format(kept), today]


def test_a_subscription_of_the_messages_own_millisecond_decides() -> None:
    whole = group("TagA", member("A", "TagA", 0, version=9000), version=9000)
    assert verdict_of(message(stored=9000), queue(), whole).outcome is Outcome.CONSUMED


def step(kind: TraceType, of: str | None, *, is_success: bool | None = None) -> TraceView:
    return TraceView(
        trace_type=kind, message_id="ID", group=of, client_host="10.0.0.7", timestamp=9100, is_success=is_success
    )


def test_a_trace_of_the_group_decides_what_its_members_of_today_cannot() -> None:
    others = [
        step(TraceType.PUB, "g", is_success=True),
        step(TraceType.SUB_BEFORE, "g"),
        step(TraceType.SUB_AFTER, "another", is_success=True),
        step(TraceType.SUB_AFTER, None, is_success=True),
        step(TraceType.SUB_AFTER, "g", is_success=False),
    ]
    assert traced_verdict("g", others) is None
    told = traced_verdict("g", [*others, step(TraceType.SUB_AFTER, "g", is_success=True)])
    sentence = "by its trace, 10.0.0.7 processed it at 1970-01-01 00:00:09.100Z"
    assert told is not None
    assert (told.outcome, told.sentences) == (Outcome.CONSUMED, [sentence])


def recorded(number: str) -> dict[str, list[dict[str, Any]]]:
    """What RocketMQ 4.9.4 and two consumers of Java told: lines by their kind, of one of two experiments."""
    packed = GOLDEN / "offsets-4.9.4.tagconflict.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(packed.read_bytes()).splitlines()]
    starts = [at for at, line in enumerate(lines) if line["kind"] == "subscription"]
    own = lines[starts[0] : starts[1]] if number == "1" else lines[starts[1] :]
    return {kind: [line for line in own if line["kind"] == kind] for kind in {line["kind"] for line in own}}


@pytest.mark.parametrize("number", ["1", "2"])
def test_no_verdict_contradicts_what_javas_consumers_were_seen_to_take(number: str) -> None:
    """In the first experiment both members stay, in the second the first one stops behind the messages.

    The recording has the subscription of before: with the stop the other's becomes newer than the messages.
    """
    lines = recorded(number)
    subscription = lines["brokerSubscription"][0]["table"]
    version = int(re.findall(r"subString=tagB.*?subVersion=(\d+)", subscription)[0])
    stored = version + 1
    held = lines["allocation"][0]["queues"]
    taken = {text.partition("@")[0] for text in lines["consumed"][-1]["by"]["consumer2"]}
    one, two = (member(f"consumer{n}", f"tag{tag}", *held[f"consumer{n}"]) for n, tag in ((1, "A"), (2, "B")))
    if number == "1":
        whole = group("tagB", one, two, version=version)
    else:
        whole = group("tagB", member("consumer2", "tagB", 0, 1, 2, 3, version=stored + 1), version=stored + 1)
    outcomes = {}
    for sent in lines["sent"]:
        where = MessageQueue("t", "b", sent["queueId"])
        owner = next(m.client_id for m in whole.members if where in (m.queues or ()))
        facts = QueueFacts(queue=where, min_offset=0, max_offset=2, consumer_offset=2, owner=owner)
        asked = replace(message("tagB", sent["queueOffset"], stored), queue=where)
        outcomes[sent["body"]] = verdict_of(asked, facts, whole).outcome
    if number == "1":
        assert outcomes == {body: Outcome.CONSUMED if body in taken else Outcome.LOST for body in outcomes}
        assert len(taken) == 4
    else:
        assert set(outcomes.values()) == {Outcome.UNKNOWN}
        assert taken == set(outcomes)


def test_tags_with_one_hash_are_told_apart_by_the_member_only() -> None:
    # "Aa" and "BB" have the Java hash 2112 both
    assert message("Aa").tags_code == message("BB").tags_code == 2112
    one = member("A", "Aa", 0)
    verdict = verdict_of(message("BB"), queue(), group("Aa", one))
    assert verdict.outcome is Outcome.FILTERED
    assert verdict.sentences == [
        "passed by the offset, delivered to A, dropped by A's tag check: nobody processed it",
        "its tag BB is not in A's own subscription Aa; the broker let it pass as another tag has the same hash 2112",
    ]


def test_nobody_tells_by_what_a_pull_consumer_filtered() -> None:
    pulls = replace(group("*", member("A", "*", 0)), consume_type="CONSUME_ACTIVELY")
    verdict = verdict_of(message("TagA"), queue(), pulls)
    reason = "each member of g filters its own pulls, and no broker tells who had the queue then"
    assert (verdict.outcome, verdict.sentences[0]) == (Outcome.UNKNOWN, UNKNOWN + reason)


def test_what_is_behind_is_told_with_what_will_become_of_it() -> None:
    told = verdict_of(message("TagB"), queue(consumer=3), CONFLICT)
    assert told.outcome is Outcome.NOT_CONSUMED_YET
    assert told.sentences[1].startswith("will be dropped by A's tag check: its tag TagB is not in A's own")
    told = verdict_of(message("TagA"), queue(consumer=3), CONFLICT)
    assert told.sentences[1].startswith("will be filtered by the broker: its tag TagA is not in the group's")


def by_sql(name: str, expression: str, version: int = 1) -> MemberFacts:
    wanted = SubscriptionData(topic="t", sub_string=expression, expression_type="SQL92", sub_version=version)
    return MemberFacts(client_id=name, subscription=wanted, queues=[QUEUE] if name == "A" else [])


def of_sql(*members: MemberFacts) -> GroupFacts:
    return GroupFacts(group="g", members=members, subscription=members[-1].subscription)


def judged(value: str | None, **answers: bool) -> MessageFacts:
    """A message whose property a has a value, and what the filter says of expressions on it."""
    names = {"big": "a > 3", "small": "a < 3"}
    sql = {names[name]: SqlAnswer(is_passed=answer, values={"a": value}) for name, answer in answers.items()}
    return replace(message(), sql=sql)


BIG, SMALL = by_sql("A", "a > 3"), by_sql("B", "a < 3", version=2)


@pytest.mark.parametrize(
    ("facts", "outcome", "sentence"),
    [
        (
            (judged("5", big=True), queue(), of_sql(BIG)),
            Outcome.CONSUMED,
            (
                "passed by the offset, passed by the broker's filter SQL92 a > 3 (a is '5'), delivered to A, "
                "which wants SQL92 a > 3, and never sent back"
            ),
        ),
        (
            (judged(None, big=False), queue(), of_sql(BIG)),
            Outcome.FILTERED,
            (
                "passed by the offset, filtered by the broker: the group's subscription SQL92 a > 3 (set by member A "
                "at 1970-01-01 00:00:00.001Z) is not true of it: a is missing: nobody processed it"
            ),
        ),
        (
            (judged("5", big=True, small=False), queue(), of_sql(BIG, SMALL)),
            Outcome.LOST,
            (
                "passed by the offset, filtered by the broker: the group's subscription SQL92 a < 3 (set by member B "
                "at 1970-01-01 00:00:00.002Z) is not true of it: a is '5', though A subscribed to it: nobody "
                "processed it"
            ),
        ),
        (
            (judged("1", small=True), queue(), of_sql(member("A", "TagB", 0), SMALL)),
            Outcome.LOST,
            (
                "passed by the offset, passed by the broker's filter SQL92 a < 3 (a is '1'), delivered to A, dropped "
                "by A's tag check: nobody processed it"
            ),
        ),
        (
            (message(), queue(), of_sql(BIG)),
            Outcome.UNKNOWN,
            UNKNOWN + "the broker does not say what SQL92 a > 3 is of it: it was not asked",
        ),
        (
            (replace(message(), sql={"a > 3": SqlAnswer(problem="CODE: 1  DESC: no")}), queue(), of_sql(BIG)),
            Outcome.UNKNOWN,
            UNKNOWN + "the broker does not say what SQL92 a > 3 is of it: CODE: 1  DESC: no",
        ),
    ],
)
def test_an_expression_counts_as_the_filter_of_the_broker_says(
    facts: tuple[MessageFacts, QueueFacts, GroupFacts], outcome: Outcome, sentence: str
) -> None:
    verdict = verdict_of(*facts)
    assert (verdict.outcome, verdict.sentences[0]) == (outcome, sentence)


def test_what_is_behind_is_told_with_what_the_expression_will_do() -> None:
    told = verdict_of(judged("5", big=True), queue(consumer=3), of_sql(BIG))
    assert told.outcome is Outcome.NOT_CONSUMED_YET
    assert told.sentences[1] == "will be passed by the broker's filter SQL92 a > 3 (a is '5')"
    told = verdict_of(judged("1", big=False), queue(consumer=3), of_sql(BIG))
    assert told.sentences[1].startswith("will be filtered by the broker: the group's subscription SQL92 a > 3 (set by")


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("a > 1 AND b = 'x''y c' OR a IS NULL", ["a", "b"]),
        ("a = 5E2 and $b_1 between 1L and .5", ["a", "$b_1"]),
        ("/* c */ a NOT IN ('b') -- d", ["a"]),
        ("a CONTAINS 'b' or TRUE", ["a"]),
        ("1 = 1", []),
    ],
)
def test_an_expression_tells_which_properties_it_names(expression: str, names: list[str]) -> None:
    assert names_in(expression) == names


def test_a_broadcasting_group_is_left_to_its_members() -> None:
    verdict = verdict_of(message(), queue(), replace(CONFLICT, message_model="BROADCASTING"))
    assert verdict.outcome is Outcome.BROADCASTING


def test_both_stages_of_a_tag_filter_are_those_of_rocketmq() -> None:
    assert passes_broker(wants("t", "*"), message(None))
    assert passes_member(wants("t", "*"), message(None))
    assert not passes_broker(wants("t", "A || B"), message(None))
    assert passes_broker(wants("t", "A || B"), message("B"))
    assert not passes_member(wants("t", "A || B"), message("C"))
    without_codes = replace(wants("t", "A"), code_set=())
    assert passes_broker(without_codes, message("A"))


def test_a_queue_tells_what_is_wrong_with_it() -> None:
    whole = group("*", member("A", "*", 0))
    behind = queue_explanation("q", queue(consumer=2, low=5), whole)
    assert behind.sentences[1] == "3 messages expired before the group had passed them"
    assert behind.has_problem
    told = queue_explanation("q", queue(consumer=9), whole)
    assert "OFFSET_ILLEGAL" in told.sentences[1]
    told = queue_explanation("q", queue(), group(None))
    assert (told.sentences, told.has_problem) == (("offset 7 of 7, first 0, owner A: 0 behind",), False)
    all_of_it = group("*", member("A", "TagA", 0), member("B", "*", 1))
    told = queue_explanation("q", queue(), all_of_it)
    assert told.sentences[2:] == ("A wants TagA: it drops messages with all other tags, which are lost",)
    assert told.has_problem
    assert str(told).splitlines()[-1] == (
        "  next: give all members of the group g the same subscription, or each its own group"
    )


def test_a_group_tells_which_queues_nobody_has() -> None:
    told = group_sentences(CONFLICT, [queue(consumer=3, owner=None), queue(consumer=7)], [])
    assert told == [
        "2 members online (push, CLUSTERING): A, B",
        "t: 4 behind in 2 queues; nobody is known to have queue 0",
    ]
    assert group_sentences(group(None), [], []) == ["nobody is online", "it has no offsets"]
    (line,) = group_sentences(group(None), [queue(consumer=None)], [])[1:]
    assert "no offset yet, " in line


def test_what_a_member_says_of_itself_is_read() -> None:
    body = (
        b'{"mqTable":{{"brokerName":"b","queueId":3,"topic":"t"}:{"cachedMsgCount":2,"commitOffset":7,"droped":true,'
        b'"lastConsumeTimestamp":5,"lastPullTimestamp":4,"locked":true}},"properties":{"PROP_CONSUME_TYPE":"x"},'
        b'"subscriptionSet":[{"subString":"A","subVersion":1,"tagsSet":["A"],"topic":"t"}],"jstack":"TID"}'
    )
    info = ConsumerRunningInfo.of_body(body)
    assert info.queues == {MessageQueue("t", "b", 3): ProcessQueueInfo(7, 2, True, True, 4, 5)}
    assert info.subscriptions["t"].tags_set == ("A",)
    assert (info.properties, info.jstack) == ({"PROP_CONSUME_TYPE": "x"}, "TID")
    assert ConsumerRunningInfo.of_body(b"{}") == ConsumerRunningInfo()
