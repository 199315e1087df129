"""Messages that are sent back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rmqfast.client.consumer.send_back import SendBack
from rmqfast.client.instance import ClientConfig


def test_a_message_goes_back_to_where_it_was_stored_by_the_address_that_can_be_reached() -> None:
    """Brokers store the address that they know themselves by, which a client elsewhere may not reach."""
    addresses: list[str] = []
    config = ClientConfig(translate_address={"10.0.0.1:10911": "127.0.0.1:30911"}.__getitem__)
    api = SimpleNamespace(consumer_send_back=lambda address, *_, **_named: addresses.append(address))
    instance: Any = SimpleNamespace(config=config, api=api)
    message: Any = SimpleNamespace(store_host="10.0.0.1:10911", topic="t", physical_offset=7, msg_id="id")
    assert SendBack(instance, "g", 16).is_sent(message, 0, None)
    assert addresses == ["127.0.0.1:30911"]
