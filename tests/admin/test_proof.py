"""What follows from a ledger: no broker, no time, tables of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rmqfast.admin import CopyFacts, CopyKind, MessageFacts, Outcome, SqlAnswer
from rmqfast.admin.ledger import BEGIN, COMMIT, PULL, RESET, Ledger, LedgerMember, LedgerRow
from rmqfast.admin.outcome import Verdict
from rmqfast.admin.place import Place
from rmqfast.admin.proof import proven_verdict
from rmqfast.client.consumer.subscription import MessageSelector, build_subscription_data
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.consumer_connection import ACTIVELY, PASSIVELY
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

QUEUE = MessageQueue("t", "b", 0)
RETRY = MessageQueue("%RETRY%g", "b", 0)
STORED = 9000
MESSAGE = MessageFacts(queue=QUEUE, queue_offset=3, msg_id="ID", tags="TagA", store_timestamp=STORED)


def subscribed(text: str) -> SubscriptionData:
    kind, _, expression = text.partition(":")
    return build_subscription_data("t", MessageSelector(kind, expression) if expression else text, now=0)


def member(name: str, text: str, *times: int, kind: str = PASSIVELY, model: str = "CLUSTERING") -> LedgerMember:
    first, last = times or (1, 20_000)
    return LedgerMember(name, subscribed(text), model, kind, first, last)


class Rows:
    """Rows in the order of their numbers."""

    def __init__(self) -> None:
        self.rows: list[LedgerRow] = []

    def _add(self, kind: str, client: str, text: str | None, stretch: tuple[int, int], times: tuple[int, int]) -> None:
        subscription = None if text is None else subscribed(text)
        self.rows.append(LedgerRow(len(self.rows) + 1, kind, client, subscription, *stretch, *times))

    def pull(self, client: str, text: str | None = "*", *, at: int = 9100, until: int = 9100) -> Rows:
        self._add(PULL, client, text, (3, 5), (at, until))
        return self

    def commit(self, client: str, start: int = 3, stop: int = 5, *, at: int = 9200, kind: str = COMMIT) -> Rows:
        self._add(kind, client, None, (start, stop), (at, at))
        return self

    def reset(self, start: int, stop: int, at: int = 9300) -> Rows:
        return self.commit("tool", start, stop, at=at, kind=RESET)


def verdict(
    rows: Rows, *members: LedgerMember, offset: int | None = 5, copies: Sequence[CopyFacts] = (), **more: Any
) -> Verdict | None:
    ledger = Ledger(since=more.pop("since", 1), gaps=more.pop("gaps", ()), rows=rows.rows, members=members)
    places = more.pop("places", {})
    return proven_verdict("g", Place(more.pop("message", MESSAGE), offset, ledger, **more), copies, places)


def told(*args: Any, **more: Any) -> tuple[Outcome, str, str | None]:
    """Outcome, first sentence, and the member that it names."""
    result = verdict(*args, **more)
    assert result is not None
    return result.outcome, result.sentences[0], result.member


AT = "at 1970-01-01 00:00:09Z"
A, B = member("a", "TagA"), member("b", "TagB")


def test_who_was_handed_it_and_has_confirmed_it_has_consumed_it() -> None:
    sentence = f"handed to a by TagA {AT}, which confirmed it by 1970-01-01 00:00:09.200Z"
    assert told(Rows().pull("a", "TagA").commit("a"), A) == (Outcome.CONSUMED, sentence, "a")
    grown = Rows().pull("a", "TagA", at=100, until=12_345).commit("a", at=12_400)
    assert told(grown, A)[1].startswith(
        "handed to a by TagA between 1970-01-01 00:00:09Z and 1970-01-01 00:00:12Z, which confirmed"
    )


@pytest.mark.parametrize(
    "rows",
    [
        Rows().pull("a"),
        Rows().pull("a").commit("b"),
        # before the pull, and of another member
        Rows().commit("a", at=9000).pull("a"),
        # it was told to go on behind the message
        Rows().pull("a").reset(3, 5).commit("a"),
        # it gave up the first pull and begins anew
        Rows().pull("a").pull("a"),
    ],
    ids=["no commit", "of another member", "before the pull", "behind a reset", "pulled again"],
)
def test_nobody_says_consumed_before_it_is_confirmed(rows: Rows) -> None:
    outcome, sentence, name = told(rows, A, offset=3)
    assert (outcome, name) == (Outcome.NOT_CONFIRMED, "a")
    assert sentence.endswith("which has not confirmed it: the group's offset is 3")


def test_a_reset_of_later_does_not_undo_what_was_consumed() -> None:
    result = verdict(Rows().pull("a").commit("a").reset(5, 0), A, offset=0)
    assert result is not None
    assert result.outcome is Outcome.CONSUMED
    assert result.sentences[1] == "the offset is at 0 now: the message will be delivered again"


def test_who_pulls_by_another_filter_is_not_handed_it() -> None:
    rows = Rows().pull("b", "TagB").commit("b")
    filtered = f"nobody got it: the broker filtered it for b by TagB {AT}"
    assert told(rows, B) == (Outcome.FILTERED, filtered, None)
    # a member that wanted it and had no part of the queue has lost it
    assert told(rows, A, B)[0] is Outcome.LOST
    # one that came or left at another time did not want it then
    assert told(rows, member("a", "TagA", 9101, 9900), B)[0] is Outcome.FILTERED
    assert told(rows, member("a", "TagA", 1, 8999), B)[0] is Outcome.FILTERED
    # the heartbeat of a pull consumer wants everything, whatever it pulls
    assert told(rows, member("b", "*", kind=ACTIVELY))[0] is Outcome.FILTERED


def test_a_member_drops_what_another_member_wants() -> None:
    outcome, sentence, name = told(Rows().pull("b", "TagA").commit("b"), A, B)
    assert (outcome, name) == (Outcome.LOST, "b")
    reason = "its tag TagA is not in its own subscription TagB"
    assert sentence == f"nobody got it: handed to b by TagA {AT}, dropped by its tag check: {reason}"


def test_a_tag_of_the_same_hash_is_dropped_and_not_lost() -> None:
    # "Aa" and "BB" have the Java hash 2112 both
    message = replace(MESSAGE, tags="BB")
    assert told(Rows().pull("a", "Aa").commit("a"), member("a", "Aa"), message=message)[0] is Outcome.FILTERED


def test_an_expression_counts_as_the_broker_says() -> None:
    rows, wanted = Rows().pull("a", "SQL92:n > 1").commit("a"), member("a", "SQL92:n > 1")

    def judged(answer: bool | None) -> MessageFacts:
        return replace(MESSAGE, sql={"n > 1": SqlAnswer(is_passed=answer, values={"n": "1"})})

    assert told(rows, wanted, message=judged(True))[1].startswith("handed to a by SQL92 n > 1 (n is '1') at")
    assert told(rows, wanted, message=judged(False))[0] is Outcome.FILTERED
    assert told(rows, wanted, message=judged(None))[0] is Outcome.UNKNOWN
    assert told(rows, wanted)[0] is Outcome.UNKNOWN


def test_what_a_member_wanted_at_that_moment_may_be_open() -> None:
    outcome, sentence, _ = told(
        Rows().pull("a").commit("a"), member("a", "TagB", 1, 9100), member("a", "TagA", 9100, 9900)
    )
    assert outcome is Outcome.UNKNOWN
    assert sentence == f"pulled for a {AT}, while it changed its subscription to TagA"
    assert told(Rows().pull("a").commit("a"))[1] == f"pulled for a {AT}, and no heartbeat told what it wanted"
    # a filter that was too long to keep
    assert told(Rows().pull("a", None).commit("a"), A)[0] is Outcome.UNKNOWN
    # both want it, so that it is open by which of the two it was handed
    both = member("a", "TagA || TagB", 1, 9100), member("a", "TagA", 9100, 9900)
    assert told(Rows().pull("a").commit("a"), *both)[0] is Outcome.CONSUMED


def test_an_offset_that_was_moved_skips_messages() -> None:
    result = verdict(Rows().reset(0, 5), A)
    assert result is not None
    assert (result.outcome, list(result.sentences)) == (
        Outcome.SKIPPED,
        [
            "nobody was handed it, and the group's offset is 5",
            "tool asked the members to move the offset from 0 to 5 at 1970-01-01 00:00:09.300Z",
        ],
    )
    by_tool = verdict(Rows().commit("192.0.2.9:4711", 0, 5), A)
    assert by_tool is not None
    assert by_tool.sentences[1].startswith("192.0.2.9:4711 set the offset from 0 to 5 at ")
    # members follow a reset, and a group that is new may begin behind the message
    assert told(Rows().reset(0, 5).commit("a", 0, 5), A)[0] is Outcome.SKIPPED
    assert told(Rows().commit("a", 0, 5, kind=BEGIN), member("a", "*", 9100, 9900))[0] is Outcome.SKIPPED


@pytest.mark.parametrize(
    "rows", [Rows().commit("a"), Rows().commit("a", 0, 5, kind=BEGIN), Rows().pull("b", "TagB").commit("a")]
)
def test_nothing_is_skipped_where_a_slave_may_have_handed_it_out(rows: Rows) -> None:
    assert verdict(rows, A, B) is None


def test_pulls_from_a_slave_have_no_order_among_the_rows_of_the_master() -> None:
    rows = Rows().commit("a")
    of_slave = replace(Rows().pull("a").rows[0], is_of_slave=True)
    rows.rows.insert(0, of_slave)
    assert told(rows, A)[0] is Outcome.CONSUMED
    # nobody knows which of the two came first
    rows.rows.append(replace(Rows().reset(0, 5).rows[0], number=9))
    assert told(rows, A)[0] is Outcome.CONSUMED
    rows.rows.insert(1, Rows().reset(0, 5).rows[0])
    rows.rows[2] = replace(rows.rows[2], number=2)
    assert told(rows, A)[0] is Outcome.NOT_CONFIRMED


def test_nothing_is_said_of_what_the_ledger_may_have_missed() -> None:
    for missing in ({"since": STORED + 1}, {"since": None}, {"gaps": [(8000, 9500)]}):
        assert verdict(Rows(), A, **missing) is None
        assert verdict(Rows().pull("b", "TagB").commit("b"), B, **missing) is None
        # what is there is there
        assert told(Rows().pull("a").commit("a"), A, **missing)[0] is Outcome.CONSUMED
    assert told(Rows().reset(0, 5), A, gaps=[(8000, 8999)])[0] is Outcome.SKIPPED


def test_what_is_behind_is_not_consumed_or_expired() -> None:
    sentence = "the group's offset is none, and nobody was handed it"
    assert told(Rows(), A, offset=None) == (Outcome.NOT_CONSUMED_YET, sentence, None)
    assert told(Rows(), A, offset=3, min_offset=4)[:2] == (
        Outcome.EXPIRED,
        "the group's offset is 3, and nobody was handed it before it was deleted",
    )


def test_rows_of_before_the_message_are_of_another_one_or_of_a_clock_that_was_set_back() -> None:
    old = Rows().pull("a", at=100, until=200).commit("a", at=300)
    assert verdict(old, A, offset=3) is None
    assert verdict(old, A) is None
    # the time of a row is late by a tick
    assert (
        told(Rows().pull("a", at=STORED - 15, until=STORED - 15).commit("a", at=STORED - 5), A)[0] is Outcome.CONSUMED
    )
    assert told(old.pull("a").commit("a"), A)[0] is Outcome.CONSUMED


def test_a_broadcast_tells_who_was_handed_it() -> None:
    casting = [member(name, "TagA", model="BROADCASTING") for name in ("a", "b")]
    result = verdict(Rows().pull("a").pull("b", "TagB"), *casting, offset=None)
    assert result is not None
    assert (result.outcome, list(result.sentences)) == (
        Outcome.BROADCASTING,
        [
            "broadcast: each member gets all messages, and keeps its own offsets",
            f"handed to a by * {AT}",
            f"the broker filtered it for b by TagB {AT}",
        ],
    )
    nobody = verdict(Rows(), *casting, offset=None)
    assert nobody is not None
    assert nobody.sentences[1:] == ["nobody was handed it"]


def copied(kind: CopyKind, stored: int, at: MessageQueue = RETRY, **more: Any) -> CopyFacts:
    return CopyFacts(kind=kind, queue=at, queue_offset=7, reconsume_times=1, store_timestamp=stored, **more)


def retried(rows: Rows, copy: CopyFacts, offset: int) -> Place:
    facts = replace(MESSAGE, queue=RETRY, queue_offset=7, store_timestamp=copy.store_timestamp)
    moved = [replace(row, start=7, stop=8) for row in rows.rows]
    return Place(facts, offset, Ledger(since=1, gaps=(), rows=moved, members=[A]))


@pytest.mark.parametrize(
    ("rows", "offset", "outcome", "sentence"),
    [
        (
            Rows().pull("a", at=9500, until=9500).commit("a", at=9600),
            8,
            Outcome.CONSUMED,
            (
                "the first retry, %RETRY%g queue 0 offset 7, was handed to a by * at 1970-01-01 00:00:09Z, which "
                "confirmed it by 1970-01-01 00:00:09.600Z"
            ),
        ),
        (
            Rows(),
            7,
            Outcome.IN_RETRY,
            ("the first retry waits in %RETRY%g queue 0 offset 7: the group's offset is 7, and nobody was handed it"),
        ),
        (
            Rows().reset(7, 8, at=9500),
            8,
            Outcome.SKIPPED,
            "its last copy, %RETRY%g queue 0 offset 7: nobody was handed it, and the group's offset is 8",
        ),
    ],
)
def test_the_newest_copy_tells(rows: Rows, offset: int, outcome: Outcome, sentence: str) -> None:
    copy = copied(CopyKind.RETRY, 9300)
    place = retried(rows, copy, offset)
    assert told(Rows().pull("a").commit("a"), A, copies=[copy], places={copy: place})[:2] == (outcome, sentence)


def test_a_dead_letter_is_dead_until_it_is_handed_out_again() -> None:
    dead = copied(CopyKind.DEAD, 9300, MessageQueue("%DLQ%g", "b", 0))
    rows = Rows().pull("a").commit("a")
    outcome, sentence, _ = told(rows, A, copies=[dead])
    assert outcome is Outcome.DEAD_LETTER
    assert sentence == (
        "consumed in vain 1 times, %DLQ%g offset 7 since 1970-01-01 00:00:09.300Z; the group g gets it no more"
    )
    rows.reset(5, 0, at=9400).pull("a", at=9500, until=9500)
    assert told(rows, A, copies=[dead])[0] is Outcome.NOT_CONFIRMED
    rows.commit("a", 0, 5, at=9600)
    assert told(rows, A, copies=[dead])[0] is Outcome.CONSUMED
    # rows of behind the dead letter are missing
    assert verdict(Rows().pull("a").commit("a"), A, copies=[dead], gaps=[(9300, 9900)]) is None


def test_a_pull_just_behind_a_reset_is_not_confirmed_by_the_offset_of_the_reset() -> None:
    """The client is told of a reset after the broker has noted it: it gives up what it was handed in between."""
    rows = Rows().reset(2, 5, at=9090).pull("a", at=9100).commit("a", 2, 5, at=9150)
    assert told(rows, A)[0] is Outcome.NOT_CONFIRMED
    # Seconds later, it has obeyed.
    late = Rows().reset(2, 5, at=9090).pull("a", at=15_000, until=15_000).commit("a", 2, 5, at=15_100)
    assert told(late, A)[0] is Outcome.CONSUMED
