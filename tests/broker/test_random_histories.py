"""Random histories of delays and transactions, with crashes: what must hold in all of them."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from rmqfast.broker.messages.stored_message import StoredMessage
from rmqfast.errors import RmqError
from rmqfast.store.config.delay_levels import DelayLevels
from tests.broker.test_schedule import Broker as DelayBroker
from tests.broker.test_transactions import Broker as TransactionBroker

LEVELS = DelayLevels()
DELAY_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("delay"), st.integers(1, 2)),
        st.tuples(st.just("run"), st.sampled_from([1, 100, 999, 1000])),
        st.sampled_from([("save and crash", 0), ("crash", 0), ("full", 0)]),
    ),
    min_size=10,
    max_size=60,
)


@settings(max_examples=40)
@given(steps=DELAY_STEPS)
def test_delayed_messages_come_in_order_not_too_early_and_all_of_them(steps: list[tuple[str, int]]) -> None:
    with TemporaryDirectory() as directory:
        broker = DelayBroker(Path(directory), batch=3)
        sent: dict[str, tuple[int, int]] = {}
        for what, number in steps:
            if what == "delay":
                sent[str(len(sent))] = (number, broker.now)
                broker.delay(number, str(len(sent) - 1))
            elif what == "run":
                broker.run(after=number)
            elif what == "full":
                broker.store.refusals = [RmqError("full")]
                broker.run()
                broker.store.refusals = []
            else:
                if what == "save and crash":
                    broker.service.persist()
                broker.start()
        broker.now += 40_000
        while broker.run(after=1000):
            pass
        delivered = broker.store.messages("orders", 3)
        # it writes files in the background
        broker.metadata.close()
    assert {one.body.decode() for one in delivered} == set(sent)
    for one in delivered:
        level, when = sent[one.body.decode()]
        assert one.store_timestamp >= when + LEVELS[level]
    for level in {level for level, _ in sent.values()}:
        first: dict[str, None] = {}
        first.update(dict.fromkeys(one.body.decode() for one in delivered if sent[one.body.decode()][0] == level))
        assert list(first) == [body for body in sent if sent[body][0] == level]


TRANSACTION_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("prepare"), st.sampled_from([0, 5000, 10_000])),
        st.tuples(st.just("end"), st.integers(0, 9)),
        st.tuples(st.just("run"), st.sampled_from([1, 7000, 60_000])),
        st.tuples(st.just("crash"), st.just(0)),
    ),
    max_size=50,
)


@settings(max_examples=60)
@given(steps=TRANSACTION_STEPS)
def test_transactions_are_asked_for_until_they_end_and_never_again(steps: list[tuple[str, int]]) -> None:
    broker = TransactionBroker()
    # the place of the newest half message of each transaction that is open; its producer knows it from the last check
    open_at: dict[str, int] = {}
    saved = deepcopy(broker.offsets.committed)
    for number, (what, value) in enumerate(steps):
        if what == "prepare":
            open_at[f"U{number}"] = broker.prepare(age=value, UNIQ_KEY=f"U{number}").physical_offset
        elif what == "end" and open_at:
            key = sorted(open_at)[value % len(open_at)]
            broker.half.remove(StoredMessage.parse(broker.store.records[open_at.pop(key)]))
        elif what == "run":
            saved = deepcopy(broker.offsets.committed)
            already = len(broker.channel.sent)
            broker.run(after=value)
            for _, fields, _ in broker.channel.sent[already:]:
                assert fields["msgId"] in open_at, "asked for what has ended"
                open_at[fields["msgId"]] = int(fields["commitLogOffset"])
        elif what == "crash" and not broker.channel.sent:
            # offsets of the last seconds are lost
            broker.offsets.committed = deepcopy(saved)
    for _ in range(3):
        already = len(broker.channel.sent)
        broker.run(after=60_000)
        asked = [fields["msgId"] for _, fields, _ in broker.channel.sent[already:]]
        assert sorted(asked) == sorted(open_at)
