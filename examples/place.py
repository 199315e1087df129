"""Where an example runs: on a cluster in this process, or on the one that `--name-server` names."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rmqfast import EmbeddedCluster


@dataclass(frozen=True)
class Place:
    """A cluster to show something on.

    Attributes:
        name_server: `host:port`.
        store: The directory of its broker's store, where it is known.
        is_own: Whether it is in this process, and nobody else has it.
        suffix: Stands behind the names of topics and groups, so that a run finds nothing of the one before.
    """

    name_server: str
    store: Path | None = None
    is_own: bool = True
    suffix: str = field(default="")

    def named(self, name: str) -> str:
        """A topic's or a group's name in this run."""
        return name + self.suffix


@contextmanager
def chosen(told: str | None, config: Mapping[str, str] | None = None) -> Iterator[Place]:
    """The place that the command line says; `told` is what the example says of itself, `config` its own cluster's."""
    parser = argparse.ArgumentParser(description=told, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name-server", metavar="HOST:PORT", help="of a cluster that runs; or one is started here")
    parser.add_argument("--store", metavar="DIR", type=Path, help="its broker's store, where it is on this machine")
    given = parser.parse_args()
    if given.name_server is not None:
        yield Place(given.name_server, given.store, is_own=False, suffix=f"_{time.time_ns() // 1_000_000:x}")
        return
    with EmbeddedCluster(config=config) as cluster:
        yield Place(cluster.name_server, Path(cluster.brokers[0].config["storePathRootDir"]))


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Waits for something to be so.

    Raises:
        TimeoutError: It is not, after so many seconds.
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"it did not happen within {seconds} s")
        time.sleep(0.05)
