"""Transactions of asyncio producers, against a broker in this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rmqfast import EmbeddedCluster, LocalTransactionState, Message, aio, open_store
from rmqfast.client.producer import SendStatus
from tests.client.producer.transactions import ASKS_SOON
from tests.waiting import until_async

from .loops import run

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config=ASKS_SOON) as running:
        yield running


def bodies(cluster: EmbeddedCluster, topic: str) -> list[bytes]:
    store = open_store(cluster.brokers[0].state.root)
    return sorted(row["body"] for row in store.scan(topic).to_arrow().to_pylist()) if topic in store.topics() else []


class Bank:
    """Does what the argument says; asked for it later, it commits all but `no`."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    async def execute_local_transaction(self, message: Message, argument: Any) -> LocalTransactionState | None:
        assert threading.current_thread() is threading.main_thread()
        await asyncio.sleep(0)
        assert "UNIQ_KEY" in message.properties
        if isinstance(argument, Exception):
            raise argument
        return argument  # type: ignore[no-any-return]

    async def check_local_transaction(self, message: Any) -> LocalTransactionState | None:
        assert threading.current_thread() is threading.main_thread()
        await asyncio.sleep(0)
        self.asked.append(message.body)
        return ROLLBACK if message.body == b"no" else COMMIT


def test_transactions_are_carried_out_on_the_loop_many_at_a_time(cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        bank = Bank()
        async with aio.TransactionProducer("bank", bank, name_server=cluster.name_server) as producer:
            sends = {
                b"yes": COMMIT,
                b"no": ROLLBACK,
                b"later": UNKNOWN,
                b"nothing said": None,
                b"raised": ValueError("no money"),
            }
            results = await asyncio.gather(
                *[producer.send_in_transaction(Message("money", body), said) for body, said in sends.items()]
            )
            assert [result.local_state for result in results] == [COMMIT, ROLLBACK, UNKNOWN, UNKNOWN, UNKNOWN]
            assert {result.send_result.status for result in results} == {SendStatus.SEND_OK}
            # where a machine is slow, the broker asks for the others, too, and may be told twice
            await until_async(lambda: set(bank.asked) >= {b"later", b"nothing said", b"raised"}, lambda: bank.asked)
            expected = sends.keys() - {b"no"}
            await until_async(lambda: set(bodies(cluster, "money")) == expected, lambda: bodies(cluster, "money"))
            assert (await producer.send(Message("money", b"a plain one"))).status is SendStatus.SEND_OK

    run(main())


def test_a_transaction_goes_on_where_nobody_waits_for_it_any_more(cluster: EmbeddedCluster) -> None:
    class Slow(Bank):
        async def execute_local_transaction(self, _message: Message, _argument: Any) -> LocalTransactionState:
            begun.set()
            await go_on.wait()
            return COMMIT

    begun, go_on = asyncio.Event(), asyncio.Event()

    async def main() -> None:
        async with aio.TransactionProducer("bank", Slow(), name_server=cluster.name_server) as producer:
            task = asyncio.create_task(producer.send_in_transaction(Message("slow", b"x")))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            go_on.set()
            await until_async(lambda: set(bodies(cluster, "slow")) == {b"x"}, lambda: bodies(cluster, "slow"))

    run(main())
