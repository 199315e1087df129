"""The puller over TLS."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmqfast._native import Fetched, Puller, PullerEvent
from rmqfast.errors import ArgumentError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RemotingServer, Request, Response, ServerOptions, TlsOptions
from tests.waiting import collect

from .records import golden_rows


def test_pulls_are_secret_where_tls_is_asked_for() -> None:
    rows, records = golden_rows("basic-4.9.4")
    offset = rows[0]["queue_offset"]

    def pull(request: Request) -> Response:
        assert request.ext_fields["queueOffset"] == str(offset)
        bounds = {"nextBeginOffset": offset + 1, "minOffset": 0, "maxOffset": offset + 1, "suggestWhichBrokerId": 1}
        return Response(ext_fields={name: str(value) for name, value in bounds.items()}, body=records[0])

    options = ServerOptions(tls=TlsOptions(mode="enforcing"))
    with RemotingServer({11: pull}, options=options) as server:
        address = server.listen("127.0.0.1:0")
        puller = Puller(consumer_group="g", tls=TlsOptions(verify=False))
        puller.assign(MessageQueue(rows[0]["topic"], "b", rows[0]["queue_id"]), address, offset, end=offset + 1)
        event, fetched = collect(lambda: puller.take(1.0), 2)
        assert isinstance(event, PullerEvent)
        assert event.is_connected
        assert isinstance(fetched, Fetched)
        assert (fetched.is_end, fetched.suggested_broker_id, fetched.body) == (True, 1, records[0])
        assert fetched.messages[0].msg_id == rows[0]["msg_id"]
        puller.close()


def test_a_broker_that_cannot_be_trusted_is_told(tmp_path: Path) -> None:
    authorities = tmp_path / "ca.pem"
    authorities.write_text("nothing")
    with RemotingServer({}, options=ServerOptions(tls=TlsOptions(mode="enforcing"))) as server:
        address = server.listen("127.0.0.1:0")
        puller = Puller(consumer_group="g", tls=TlsOptions(trust=authorities))
        puller.assign(MessageQueue("t", "b", 0), address, 0)
        (event,) = collect(lambda: puller.take(1.0), 1)
        assert isinstance(event, PullerEvent)
        assert not event.is_connected
        assert "ca.pem" in event.reason
        puller.close()
    with pytest.raises(ArgumentError, match="trust"):
        Puller(consumer_group="g", tls=TlsOptions())
