"""Two consumers of one group with different tags: the messages of each, and what mqadmin says of the lost ones."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.interop.rocketmq import java

from .cluster import Cluster

TAGS = ("tagA", "tagB")
VERSION, TOPIC, GROUP, QUEUES = "4.9.4", "conflict", "inconsistent", 4
MOMENTS = ("first", "last")


def conflict(cluster: Cluster) -> dict[str, Any]:
    """Plays eight messages of the tag that the broker kept: the state once its consumer has its own, and at the end.

    Which consumer's subscription it kept is a matter of milliseconds; queues are told apart by their owner.
    """
    made = ("-n", cluster.name_server, "-c", "DefaultCluster", "-t", TOPIC, "-r", QUEUES, "-w", QUEUES)
    java(VERSION, "Admin", "updateTopic", *made)
    words = ("--topic", TOPIC, "--group", GROUP, "--first", TAGS[0], "--second", TAGS[1], "--send", "kept")
    told = java(VERSION, "TagConflict", "--namesrv", cluster.name_server, *words)
    lines = list(map(json.loads, told.splitlines()))

    def of(kind: str, **more: Any) -> list[dict[str, Any]]:
        return [line for line in lines if line["kind"] == kind and more.items() <= line.items()]

    owned = of("allocation")[0]["queues"]
    (kept,) = re.findall(TOPIC + r"=SubscriptionData \[.*?subString=(\w+)", of("brokerSubscription")[0]["table"])
    queue_of = {line["body"]: line["queueId"] for line in of("sent")}
    role = {"consumer1": "kept" if kept == TAGS[0] else "other", "consumer2": "kept" if kept == TAGS[1] else "other"}
    found: dict[str, Any] = {"owned": sorted(owned.values()), "queues": sorted(queue_of.values())}
    for moment in MOMENTS:
        got = of("consumed", moment=moment)[0]["by"]
        table = of("offsets", moment=moment)[0]["table"]
        tracks = of("track", moment=moment)
        found[moment] = {
            role[who]: {
                "got": len(got[who]),
                "of its queues": {int(text.rpartition("@")[2]) for text in got[who]} <= set(queues),
                "offsets": [offset(table[str(queue)], role[who], moment) for queue in queues],
                "track": sorted(
                    {track(line["track"], role[who], moment) for line in tracks if queue_of[line["body"]] in queues}
                ),
            }
            for who, queues in owned.items()
        }
    return found


def offset(one: dict[str, int], role: str, moment: str) -> str:
    """The group's offset in a queue and the queue's length; consumers report theirs every five seconds."""
    return "on the way" if role == "kept" and moment == "first" else f"{one['consumer']} of {one['broker']}"


def track(text: str, role: str, moment: str) -> str:
    found = re.search(r"trackType=(\w+)", text)
    return "on the way" if role == "kept" and moment == "first" else found[1] if found else text
