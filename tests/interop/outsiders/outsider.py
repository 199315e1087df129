"""A client or a suite that this project did not write: how it is installed, how it is run, which rows it gives."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rmqfast.errors import ResponseError
from rmqfast.remoting import RemotingClient, RequestCode
from tests.broker.interop import masks
from tests.broker.interop.cluster import Cluster
from tests.interop.rocketmq import NICE, create_topic
from tests.waiting import until

#: Where what is installed lies; git leaves it out.
TARGET = Path(__file__).parents[1] / "target"
INSTALL_SECONDS = 600.0
PLAY_SECONDS = 300.0

#: What happened in each scenario, in order of its text.
Rows = dict[str, list[Any]]


class NotInstallableError(RuntimeError):
    """An outsider that cannot be had here; the message says which step failed and how."""


@dataclass(frozen=True)
class Outsider:
    """One client or suite.

    Attributes:
        name: As `--only` takes it.
        version: Its release.
        runs: What it is and what it does, for the table.
        install: Brings it onto this machine, once; raises `NotInstallableError`.
        play: Does all of its scenarios with a fresh cluster.
        comparable: A scenario's rows without what brokers of 4.9 and 5.x do differently by design.
    """

    name: str
    version: str
    runs: str
    install: Callable[[], None]
    play: Callable[[Cluster], Rows]
    comparable: Callable[[str, Any], Any] = lambda _, rows: masks.between_versions(rows)


def install_once(directory: Path, sources: Sequence[Path], *steps: Sequence[object], cwd: Path | None = None) -> None:
    """Runs the steps of an installation, unless they succeeded since the sources were changed.

    Raises:
        NotInstallableError: A step failed.
    """
    marker = directory / ".installed"
    if marker.exists() and all(source.stat().st_mtime <= marker.stat().st_mtime for source in sources):
        return
    directory.mkdir(parents=True, exist_ok=True)
    for step in steps:
        command = [*NICE, *map(str, step)]
        try:
            subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        except FileNotFoundError as error:
            raise NotInstallableError(f"{step[0]} is not on this machine: install it first") from error
        except subprocess.TimeoutExpired as error:
            raise NotInstallableError(f"{step[0]} took more than {INSTALL_SECONDS:.0f} s") from error
        except subprocess.CalledProcessError as error:
            said = (error.stderr or error.stdout).strip().splitlines() or ["nothing was said"]
            raise NotInstallableError(f"{step[0]} ended with {error.returncode}: {said[-1]}") from error
    marker.touch()


def play_program(cluster: Cluster, prefix: str, *command: object, environment: dict[str, str] | None = None) -> Rows:
    """The rows of a program that takes `--list`, or a name server; its topics are made first, as PREFIX_SCENARIO."""
    names = json.loads(_run(*command, "--list", environment=environment))
    for name in names:
        make_topic(cluster, f"{prefix}_{name}")
    rows: Rows = {name: [] for name in names}
    for line in _run(*command, cluster.name_server, environment=environment).splitlines():
        if line.startswith('{"scenario"'):
            told = json.loads(line)
            rows[told["scenario"]].append(masks.row(told["row"], cluster))
    return {name: in_order(told) for name, told in rows.items()}


def in_order(rows: Iterable[Any]) -> list[Any]:
    """Rows in order of their text: what comes together comes in any order."""
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def make_topic(cluster: Cluster, topic: str) -> None:
    """A topic with two queues, which the name server knows."""
    create_topic(cluster.broker, topic, 2)

    def is_known() -> bool:
        try:
            client.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        except ResponseError:
            return False
        return True

    with RemotingClient(cluster.name_server, timeout=10) as client:
        until(is_known, f"the name server knows {topic}")


def _run(*words: object, environment: dict[str, str] | None = None) -> str:
    command = [*NICE, *map(str, words)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PLAY_SECONDS, env=environment, cwd=TARGET
    )
    if done.returncode:
        raise RuntimeError(f"{words[1]} ended with {done.returncode}: {done.stderr[-1000:]}")
    return done.stdout
