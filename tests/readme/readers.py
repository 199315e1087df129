"""The environment of a reader of the README: a store, a cluster with a topic, a directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rmqfast import EmbeddedCluster, Message, Producer

README = Path(__file__).parents[2] / "README.md"
#: `tests/website/test_translations.py` holds it in step: what it shows is run once, from the English one.
README_IN_CHINESE = README.with_name("README.zh.md")
#: The README, as `documents.check_code` takes it.
DOCUMENT = "../README.md"


@contextmanager
def readers_things(directory: Path) -> Iterator[dict[str, str]]:
    """Replacements for the addresses and paths of the README; store and cluster have orders."""
    from rmqfast.cli.demo import make_store  # the environments of older PySparks are without the command line

    make_store(directory / "rocketmq", 1)
    with EmbeddedCluster() as cluster:
        with Producer("made-up", name_server=cluster.name_server) as producer:
            producer.send_many([Message("orders", b"%d" % number, tags="paid") for number in range(10)])
        yield {
            "/data/rocketmq/store": f"{directory}/rocketmq",
            "/data/": f"{directory}/",
            "10.0.0.1:9876": cluster.name_server,
            "--namesrv-port 9876 --broker-port 10911": "--namesrv-port 0 --broker-port 0",
        }
