"""Offsets that rmqfast stored and Java goes on with, and the other way round."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rmqfast import MessageQueue
from rmqfast.client.instance import ClientConfig
from rmqfast.client.push import PushConsumer

from .scene import FIRST, Scene, Seen

_COUNT = 40


def java_goes_on_where_rmqfast_stopped_and_rmqfast_where_java_did(scene: Scene) -> None:
    topic, group = "offsets", "by_turns"
    queues = scene.topic(topic)
    for turn in range(2):
        _ours(scene, queues, lambda seen: scene.push(group, topic, seen))
        _javas(scene, queues, group)
        assert scene.offsets(group, topic) == [2 * (turn + 1) * _COUNT // len(queues)] * len(queues)


def files_of_offsets_are_those_of_both(scene: Scene) -> None:
    """Members that get all messages each keep their offsets on their machine."""
    topic, group, name = "local_offsets", "by_file", "same-name"
    queues = scene.topic(topic)
    files = scene.directory / "offsets"
    config = ClientConfig(name_server=scene.name_server, instance_name=name, local_offset_dir=files)

    def ours(seen: Seen) -> PushConsumer:
        made = PushConsumer(group, config=config, message_model="BROADCASTING", consume_from_where=FIRST)
        made.subscribe(topic)
        made.register_message_listener(seen)
        return made

    for turn in range(2):
        _ours(scene, queues, ours)
        (file,) = files.rglob("offsets.json")
        assert file.parts[-3].endswith(f"@{name}")
        assert f":{(2 * turn + 1) * _COUNT // len(queues)}" in file.read_text()
        extra = f"-Drocketmq.client.localOffsetStoreDir={files}"
        _javas(scene, queues, group, "--broadcast", "--instance", name, extra=extra)
        assert list(files.rglob("offsets.json")) == [file]


def _send(scene: Scene, queues: Sequence[MessageQueue]) -> list[tuple[int, int]]:
    return sorted((sent.queue.queue_id, sent.queue_offset) for sent in scene.send(queues, [b"x"] * _COUNT))


def _ours(scene: Scene, queues: Sequence[MessageQueue], make: Callable[[Seen], PushConsumer]) -> None:
    """A consumer of rmqfast gets what was sent since, and nothing else."""
    seen, sent = Seen(), _send(scene, queues)
    with make(seen):
        seen.wait(_COUNT)
    assert sorted(seen.places) == sent


def _javas(scene: Scene, queues: Sequence[MessageQueue], group: str, *words: object, extra: str = "") -> None:
    """A consumer of Java gets what was sent since, and nothing else."""
    sent = _send(scene, queues)
    with scene.java(group, queues[0].topic, *words, extra=extra) as java:
        java.wait(_COUNT)
    assert sorted(java.places) == sent


PLAYS = (
    java_goes_on_where_rmqfast_stopped_and_rmqfast_where_java_did,
    files_of_offsets_are_those_of_both,
)
