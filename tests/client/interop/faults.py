"""What goes wrong around clients: they heal by themselves, or say once and clearly what is wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import closing

import pytest

from rmqfast import Message
from rmqfast.client.producer import Producer, ProducerOptions
from rmqfast.client.pull import PullConsumer
from rmqfast.client.push import PushConsumer
from rmqfast.errors import ArgumentError, ClientError, ResponseError, RmqError
from tests.effort import effort
from tests.proxy import Proxy

from .exiting import WAYS
from .member import GROUPS, group_of
from .notes import Notes
from .processes import MEMBER, MemberProcess, Sending, python
from .scene import FIRST, Scene, Seen, scene, until

_EXITS = effort("RMQFAST_EXITS", 20, 1000)
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


def what_cannot_be_done_is_said_once_with_code_remark_and_what_to_do(scene_: Scene) -> None:
    with Producer("wrong_port", name_server="127.0.0.1:1") as lost:
        with pytest.raises(ClientError, match=r"connect to <127\.0\.0\.1:1> failed") as caught:
            lost.send(Message("t", b"x"))
        assert "name_server is its address" in str(caught.value)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("NAMESRV_ADDR", raising=False)
        with pytest.raises(ClientError, match=r"(?i)name server"), Producer("nowhere") as nowhere:
            nowhere.send(Message("t", b"x"))
    options = ProducerOptions(create_topic_key="nobodys", max_message_size=16 << 20)
    with (
        Producer("errors", name_server=scene_.name_server, instance_name="errors", options=options) as producer,
        PullConsumer("errors", name_server=scene_.name_server) as consumer,
    ):
        with pytest.raises(ClientError, match="No route info of this topic: unknown_topic") as caught:
            producer.send(Message("unknown_topic", b"x"))
        assert caught.value.response_code == 10_005
        assert "\n" in str(caught.value), "and what to do next"
        with pytest.raises(ClientError, match="unknown_topic"):
            consumer.fetch_subscribe_message_queues("unknown_topic")
        (closed,) = scene_.topic("write_only", 1)
        scene_.admin.topics.update("write_only", perm=2)
        until(lambda: _code(lambda: consumer.pull(closed, "*", 0, 1)) == 16, "pulling is forbidden")
        with pytest.raises(ResponseError, match=r"CODE: 16 .*pulling message is forbidden"):
            consumer.pull(closed, "*", 0, 1)
        (open_,) = scene_.topic("large", 1)
        with pytest.raises(RmqError, match="CODE: 13 "):
            producer.send(Message("large", os.urandom(6 << 20)), open_)
        with pytest.raises((ClientError, ArgumentError), match="over max value, MAX: 4194304"):
            scene_.producer.send(Message("large", bytes((4 << 20) + 1)), open_)


def _code(call: Callable[[], object]) -> int:
    """Which code a broker refuses with; 0 where it does not."""
    try:
        call()
    except ResponseError as error:
        return error.code
    return 0


def interpreters_end_while_a_push_consumer_runs(scene_: Scene) -> None:
    topic, pipe = "exits", subprocess.PIPE
    queues = scene_.topic(topic)
    scene_.send(queues, [b"x"] * 40)
    for first in range(0, _EXITS, 2):
        running = []
        for number in range(first, min(first + 2, _EXITS)):
            how = WAYS[number % len(WAYS)]
            words = (scene_.name_server, topic, f"exits-{number}", how)
            running.append((how, python("tests.client.interop.exiting", *words, stdout=pipe, stderr=pipe)))
        for how, child in running:
            try:
                said = child.communicate(timeout=90)
            except subprocess.TimeoutExpired:
                child.kill()
                said = child.communicate()
                raise AssertionError(f"{how}: it hangs: {said}") from None
            assert (child.returncode, *said) == (0, "", ""), how


PLAYS = (
    clients_heal_after_a_broker_was_restarted,
    clients_go_on_while_a_name_server_is_down,
    a_member_that_stood_still_goes_on,
    what_cannot_be_done_is_said_once_with_code_remark_and_what_to_do,
    interpreters_end_while_a_push_consumer_runs,
)
