"""What name servers are told of topics, as they are made."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from rmqfast import EmbeddedCluster
from rmqfast.admin import Admin


def test_name_servers_know_all_topics_that_were_made_at_the_same_time() -> None:
    with (
        EmbeddedCluster(name_servers=2) as cluster,
        Admin(name_server=cluster.name_server) as admin,
        ThreadPoolExecutor(8) as threads,
    ):
        for turn in range(5):
            names = [f"topic-{turn}-{number}" for number in range(8)]
            list(threads.map(admin.create_topic, names))
            for name_server in cluster.name_server.split(";"):
                with Admin(name_server=name_server, instance_name=f"{name_server}-{turn}") as one:
                    assert set(names) <= set(one.topics.all()), turn
