"""mqadmin, every command that the broker answers for, in a sequence that makes each of them print something.

python -m tests.broker.interop.mqadmin CLUSTER     (ours or 4.9.4)
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

from tests.interop.rocketmq import java, running

from . import masks
from .admin_commands import MESSAGES, SEQUENCE
from .cluster import SCENARIO, Cluster, cluster_of

VERSION = "4.9.4"
PERSISTED = 45.0  # by then a consumer has all its queues, and has told the broker what it consumed
STATUS = re.compile(r"^((?:<broker>)?\s*\w+?)(?:_/\S*)?(\s*:).*$")
# Lines of getBrokerConfig whose value follows from the machine, the paths, the ports or the time.
FIGURES = re.compile(
    r"^(?P<name>storePath\w*|rocketmqHome|namesrvAddr|listenPort|haListenPort|brokerIP\d|acl\w*File\w*|\w*ThreadPoolNums?"
    r"|startAcceptSendRequestTimeStamp|diskMaxUsedSpaceRatio|brokerConfigPath)(?P<between>\s*=\s*).*$"
)


@dataclass
class Admin:
    """mqadmin in one process, a command after the other."""

    process: Popen[str]
    name_server: str

    def __call__(self, words: list[str]) -> str:
        """What a command prints."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([*words, "-n", self.name_server]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"mqadmin ended at {words}")
        answer = json.loads(line)
        sys.stderr.write(f"{answer['seconds']} s  {' '.join(words)}\n")
        return str(answer["out"])


class Play:
    """What happens beside mqadmin: messages, a consumer that has left, and a consumer and a producer that stay."""

    def __init__(self, cluster: Cluster, stack: ExitStack) -> None:
        self.cluster, self.stack = cluster, stack
        self.values = {"broker": cluster.broker}
        self.log = cluster.directory / "clients.log"

    def produce(self) -> None:
        """Twelve messages with all that a message can have."""
        lines = "\n".join(map(json.dumps, MESSAGES))
        sent = java(VERSION, "Produce", "--namesrv", self.cluster.name_server, "--spec", "-", stdin=lines)
        first = json.loads(sent.splitlines()[0])
        found, key = first["offsetMsgId"], first["msgId"]
        self.values |= {"offset_id": found, "offset_id_absent": found[:-8] + "0FFFFFFF"}
        self.values |= {"unique_key": key, "unique_key_absent": key[:-4] + "7777"}

    def consume(self) -> None:
        """A group that has consumed some and left: what it has not seen is behind it."""
        to = ("--namesrv", self.cluster.name_server, "--topic", "adm", "--group", "adm_offline")
        java(VERSION, "Consume", *to, "--mode", "pull", "--commit")
        java(VERSION, "Consume", *to, "--mode", "push", "--idle-ms", 23_000)  # its retry queue comes after 20 s

    def live(self) -> None:
        """A consumer and a producer, and the client id of the consumer."""
        to = ("--namesrv", self.cluster.name_server, "--topic", "adm")
        stay = ("--idle-ms", 400_000, "--timeout-ms", 400_000)
        consumer = self.stack.enter_context(
            running(VERSION, "Consume", *to, "--group", "adm_live", *stay, log=self.log)
        )
        words = ("--group", "adm_producer", "--queue", 0, "--linger-ms", 400_000)
        producer = self.stack.enter_context(running(VERSION, "Produce", *to, *words, log=self.log))
        assert consumer.stdout is not None
        assert producer.stdout is not None
        producer.stdout.readline()
        for _ in range(len(MESSAGES) + 1):
            consumer.stdout.readline()

    def sample(self) -> None:
        """Waits until the broker, which samples its figures every ten seconds, has counted all messages."""
        time.sleep(11)

    def end(self) -> None:
        """Nothing more."""


def ask_all(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Each command line as it stands in the sequence, and what it printed, masked."""
    with ExitStack() as stack:
        play = Play(cluster, stack)
        # consumerStatus leaves a directory where it is called
        log, cwd = cluster.directory / "mqadmin.log", cluster.directory
        process = stack.enter_context(running(VERSION, "Admin", "--stdin", log=log, cwd=cwd))
        admin = Admin(process, cluster.name_server)
        for line in SEQUENCE.strip().splitlines():
            if line.startswith("!"):
                getattr(play, line[1:])()
                if line == "!live":
                    play.values["client"] = client_id(admin)
                    settle(admin, play.values["client"])
                continue
            words = [word.format(**play.values) for word in line.split()]
            yield line, printed(admin(words), play.values, figures=STATUS if words[0] == "brokerStatus" else None)


def client_id(admin: Admin) -> str:
    """The client id of the consumer that stays."""
    text = admin(["consumerConnection", "-g", "adm_live"])
    found = re.search(r"^(?:\d+\s+)?(\S+@\S+)", text, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"no client id in {text}")
    return found[1]


def settle(admin: Admin, client: str) -> None:
    """Waits until the producer has told of itself and the consumer has its retry queue, too, and nothing before it."""
    end = time.monotonic() + PERSISTED
    while time.monotonic() < end:
        if "not exist" in admin(["producerConnection", "-g", "adm_producer", "-t", "adm"]):
            time.sleep(0.5)
            continue
        running_info = admin(["consumerStatus", "-g", "adm_live", "-i", client])
        if "%RETRY%adm_live" in running_info.partition("#Consumer Offset#")[2]:
            progress = admin(["consumerProgress", "-g", "adm_live"])
            if "%RETRY%adm_live" in progress and re.search(r"Diff Total: 0", progress):
                return
        time.sleep(0.5)
    raise RuntimeError("the consumer did not tell what it consumed")


def printed(text: str, values: dict[str, str], figures: re.Pattern[str] | None = None) -> str:
    """An output with its volatile parts masked, and blanks run together: columns move with what they hold."""
    for name, value in values.items():
        text = text.replace(value, f"<{name}>")
    lines = [masks.text(line.strip()) for line in text.splitlines() if not line.startswith("\tat ")]
    if figures is not None:
        lines = [figures.sub(r"\1\2 <figure>", line) for line in lines]
    lines = [line for line in lines if not line.startswith("rocketmqHome")]  # ours has none
    lines = [FIGURES.sub(r"\g<name>\g<between><figure>", line) for line in lines]
    return "\n".join(re.sub(r"\s+", " ", masks.printed(line)) for line in lines).strip()


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        cluster_of(sys.argv[1], Path(directory) / "mq", SCENARIO) as cluster,
    ):
        for line, text in ask_all(cluster):
            sys.stdout.write(f"$ {line}\n{text}\n\n")


if __name__ == "__main__":
    main()
