"""What clients in C++, Go, Node and C# ask, and a real 4.9.4 answers with 0: ours answers each with 0, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rmqfast import EmbeddedCluster
from tests.disks import ROOMY
from tests.interop.recorder import SENDS, recorded
from tests.interop.rocketmq import create_topic
from tests.waiting import PATIENCE

from .interop.cluster import SCENARIO
from .interop.frames import Connection, Frame, wanting_answer

SEND_BACK, LOCK, HEARTBEAT, CONSUMERS, QUERY_OFFSET, COMMIT_OFFSET = 36, 41, 34, 38, 14, 15
#: A machine with other work may take longer for a message than a broker wants one to wait.
PROPERTIES = ROOMY | dict(line.split("=", 1) for line in (*SCENARIO, "waitTimeMillsInSendQueue=20000"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """A broker with the properties that the real one had."""
    with EmbeddedCluster(tmp_path_factory.mktemp("store"), config=PROPERTIES) as running:
        yield running


def requests(client: str) -> list[Frame]:
    """What a client asked, in its order; what it asked in one way wants an answer here."""
    rows = [row for row in recorded() if row["client"] == client]
    return [Frame.read(wanting_answer(bytes.fromhex(row["request"]))) for row in rows]


@pytest.mark.parametrize("client", ["cpp", "go", "node", "csharp"])
def test_each_request_of_a_client_is_answered_as_a_real_broker_did(cluster: EmbeddedCluster, client: str) -> None:
    asked = requests(client)
    broker = cluster.brokers[0].address
    for topic in {frame.fields.get("topic") or frame.fields["b"] for frame in asked if frame.code in SENDS}:
        create_topic(broker, topic, 4)
    host, _, port = broker.rpartition(":")
    connection, place = Connection((host, int(port))), 0
    refused: list[Any] = []
    # messages first: a pull that was held until one came is answered at once
    for number, frame in enumerate(sorted(asked, key=lambda frame: frame.code not in SENDS)):
        # a message that is given back has another place in this log
        moved = {"offset": str(place)} if frame.code == SEND_BACK else {}
        header = frame.header | {"opaque": number, "extFields": frame.fields | moved}
        connection.send(Frame(frame.serialization, header, frame.body).written())
        answer = connection.response(number, PATIENCE)
        if answer is None or answer.code:
            refused.append((frame.code, frame.fields, answer and (answer.code, answer.header.get("remark"))))
        elif frame.code in SENDS:
            place = int(answer.fields["msgId"].split(",")[0][-16:], 16)
    connection.close()
    assert refused == []


def test_the_recording_has_what_consumers_in_other_languages_are_known_by() -> None:
    found = {client: {frame.code for frame in requests(client)} for client in ("cpp", "go", "node")}
    assert {HEARTBEAT, CONSUMERS, QUERY_OFFSET, COMMIT_OFFSET, SEND_BACK, LOCK} <= found["cpp"]
    assert {HEARTBEAT, CONSUMERS, QUERY_OFFSET, COMMIT_OFFSET, SEND_BACK, LOCK} <= found["go"]
    assert {HEARTBEAT, CONSUMERS, QUERY_OFFSET, SEND_BACK} <= found["node"]


def test_the_languages_of_the_recorded_clients_are_kept_in_their_headers() -> None:
    assert {frame.header["language"] for frame in requests("cpp") if frame.code == HEARTBEAT} == {"CPP"}
    assert {frame.header["language"] for frame in requests("go") if frame.code == HEARTBEAT} == {"GO"}
