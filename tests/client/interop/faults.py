"""What goes wrong around clients: they heal by themselves, or say once and clearly what is wrong."""

from __future__ import annotations

import signal
import time
from contextlib import closing

import pytest

from rmqfast.client.producer import Producer
from rmqfast.client.push import PushConsumer
from rmqfast.errors import ClientError
from tests.proxy import Proxy

from .member import GROUPS, group_of
from .notes import Notes
from .processes import MEMBER, MemberProcess, Sending
from .scene import FIRST, Scene, Seen, scene, until

_DOWN, _STOPPED = 20.0, 35.0


def clients_heal_after_a_broker_was_restarted(scene_: Scene) -> None:
    """Cleanly, and after a crash: what was acknowledged is consumed, and sending and consuming go on."""
    topic, seen = "restarts", Seen()
    directory = scene_.directory / "restarts"
    directory.mkdir()
    with scene(scene_.kind, directory) as own:
        queues = own.topic(topic)
        with own.push("restarted", topic, seen), Sending(own.producer, queues, 100) as sending:
            until(lambda: len(seen.messages) > 100, "it runs")
            for end in (own.cluster.stop, own.cluster.kill9):
                end()
                own.cluster.start()
                before = sending.acknowledged.copy()
                until(lambda before=before: len(sending.acknowledged - before) > 100, "sends go on")  # type: ignore[misc]
                until(lambda before=before: set(seen.places) - before, "consuming goes on")  # type: ignore[misc]
            sending.__exit__()
            until(lambda: set(seen.places) >= sending.acknowledged, "what was acknowledged is consumed")


def clients_go_on_while_a_name_server_is_down(scene_: Scene) -> None:
    topic, seen = "nameless", Seen()
    queues = scene_.topic(topic)
    with (
        closing(Proxy(scene_.name_server)) as gate,
        Producer("nameless", name_server=gate.address, instance_name="nameless") as producer,
    ):
        consumer = PushConsumer("nameless_too", name_server=gate.address, consume_from_where=FIRST)
        consumer.subscribe(topic)
        consumer.register_message_listener(seen)
        with consumer, Sending(producer, queues, 50) as sending:
            until(lambda: len(seen.messages) > 50, "it runs")
            gate.down()
            began = time.monotonic()
            while time.monotonic() - began < _DOWN:
                before = len(seen.messages)
                until(lambda before=before: len(seen.messages) > before + 20, "messages come")  # type: ignore[misc]
            assert not sending.failures
            with pytest.raises(ClientError, match=f"connect to <{gate.address}> failed") as caught:
                producer.fetch_publish_message_queues("nameless_new")
            assert "see that a name server runs there" in str(caught.value)
            gate.up()
            until(lambda: producer.fetch_publish_message_queues(topic), "routes are asked for again")
            sending.__exit__()
            until(lambda: set(seen.places) >= sending.acknowledged, "all is consumed")


def a_member_that_stood_still_goes_on(scene_: Scene) -> None:
    topic = "stands_still"
    queues = scene_.topic(topic, 8)
    files, notes = [scene_.directory / f"still-{number}" for number in range(2)], Notes()
    members = [MemberProcess(MEMBER, file, scene_.name_server, topic, file, file.name) for file in files]
    try:
        for member in members:
            member.wait_ready()
        groups = [group_of(name, topic) for name in GROUPS]
        until(lambda: all(scene_.is_shared(group, queues, 2) for group in groups), "both have queues")
        with Sending(scene_.producer, queues, 50) as sending:
            members[0].signal(signal.SIGSTOP)
            began = time.monotonic()
            while time.monotonic() - began < _STOPPED:
                before = notes.read(files[1:]).begun.total()
                until(lambda before=before: notes.read(files[1:]).begun.total() > before, "the other goes on")  # type: ignore[misc]
            members[0].signal(signal.SIGCONT)
        sent = sending.acknowledged
        for group in GROUPS:

            def is_done(group: str = group) -> bool:
                return notes.read(files).done[group] >= sent

            until(is_done, f"{group}: all is consumed", every=0.5)
        until(lambda: all(scene_.is_shared(group, queues, 2) for group in groups), "both have queues again")
    finally:
        for member in members:
            member.kill()


PLAYS = (
    clients_heal_after_a_broker_was_restarted,
    clients_go_on_while_a_name_server_is_down,
    a_member_that_stood_still_goes_on,
)
