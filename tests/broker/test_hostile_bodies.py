"""Whatever body comes with a request: an answer, or RocketMQ's refusal, and never a defect.

The codes are those of the processors' tables, so that a new one is asked without a word here; one that reads its body
has to have a sound one to begin with.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import ClassVar

import pytest

from rmqfast.broker import Broker, BrokerConfig
from rmqfast.broker.processors import processors_of
from rmqfast.errors import ResponseError
from rmqfast.nameserver import NameServer, NamesrvConfig
from rmqfast.remoting import Later, Processor, Request, RequestCode
from tests.broker.bodies import hostile, seeds
from tests.broker.client_doubles import Line
from tests.broker.live_server import SMALL
from tests.broker.mutations import FIELDS, NASTY
from tests.effort import effort

Table = Mapping[int, Processor]
MANY = effort("RMQFAST_BODIES", 200, 4_000)


class Watched(Request):
    """A request that notes whether its body was looked at."""

    looked_at: ClassVar[set[int]] = set()

    def __getattribute__(self, name: str) -> object:
        if name == "body":
            Watched.looked_at.add(self.code)
        return super().__getattribute__(name)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Table]]:
    """Who answers which code: of a broker and of a name server."""
    home = tmp_path_factory.mktemp("servers")
    paths = {"storePathRootDir": str(home / "store"), "listenPort": "0"}
    files = NamesrvConfig(kv_config_path=str(home / "kv"), config_store_path=str(home / "namesrv.properties"))
    names = NameServer(files)
    with Broker(BrokerConfig(SMALL | paths)) as broker:
        answers, _ = processors_of(broker.state, on_update=lambda _: None)
        yield {"broker": answers, "namesrv": names.processors}


def ask(table: Table, request: Request) -> None:
    """Has the request answered; a refusal is an answer."""
    with suppress(ResponseError):
        answer = table[request.code](request)
        if isinstance(answer, Later):
            answer.work()


@pytest.mark.parametrize("server", ["broker", "namesrv"])
def test_every_code_has_an_answer_for_every_body(tables: dict[str, Table], server: str) -> None:
    for code in sorted(tables[server]):
        choice = random.Random(f"{server} {code}")
        for _ in range(MANY):
            fields = FIELDS | {choice.choice([*FIELDS]): choice.choice(NASTY)} if choice.random() < 0.3 else FIELDS
            body = hostile(code, choice)
            try:
                ask(tables[server], Request(code, fields, body, Line()))
            except Exception as error:
                error.add_note(f"request {code} of {server}, fields {fields}, body {body[:2000]!r}")
                raise


def test_every_code_that_reads_a_body_has_a_sound_one_to_begin_with(tables: dict[str, Table]) -> None:
    for table in tables.values():
        for code in table:
            ask(table, Watched(code, FIELDS, b"{}", Line()))
    assert Watched.looked_at - {*seeds()} == set()
    assert Watched.looked_at >= {RequestCode.HEART_BEAT, RequestCode.REGISTER_BROKER, RequestCode.LOCK_BATCH_MQ}
