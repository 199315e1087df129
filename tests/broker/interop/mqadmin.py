"""mqadmin, every command that the broker answers for, in a sequence that makes each of them print something."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from subprocess import Popen

from tests.interop.rocketmq import java, running
from tests.waiting import PATIENCE, until

from . import masks
from .admin_commands import MESSAGES, SEQUENCE
from .cluster import Cluster

VERSION = "4.9.4"
LONG = 900_000
STAY = ("--mode", "push", "--idle-ms", LONG, "--timeout-ms", LONG)
# Java's clients tell of themselves every 30 seconds, and look for queues that are theirs every 20.
CLIENTS_PATIENCE = 3 * PATIENCE
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
    """The clients beside mqadmin: a consumer that has left, a consumer and a producer that stay."""

    def __init__(self, cluster: Cluster, stack: ExitStack, admin: Admin) -> None:
        self.cluster, self.stack, self.admin = cluster, stack, admin
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
        with running(VERSION, "Consume", *to, *STAY, log=self.log) as consumer:
            until(lambda: self._has_told("adm_offline"), "the offsets are stored", patience=CLIENTS_PATIENCE)
            consumer.terminate()
            consumer.wait(PATIENCE)

    def live(self) -> None:
        """A consumer and a producer, and the client id of the consumer."""
        to = ("--namesrv", self.cluster.name_server, "--topic", "adm")
        consumer = self.stack.enter_context(
            running(VERSION, "Consume", *to, "--group", "adm_live", *STAY, log=self.log)
        )
        self.values["client"] = await_client(self.admin, "adm_live")
        until(lambda: self._has_told("adm_live"), "the offsets are stored", patience=CLIENTS_PATIENCE)
        # a young broker counts the last minute: from this message on it passes
        words = ("--group", "adm_producer", "--queue", 0, "--linger-ms", LONG)
        producer = self.stack.enter_context(running(VERSION, "Produce", *to, *words, log=self.log))
        assert consumer.stdout is not None
        assert producer.stdout is not None
        producer.stdout.readline()
        for _ in range(len(MESSAGES) + 1):
            consumer.stdout.readline()

        until(
            lambda: self._has_told("adm_live", diff=0),
            "the broker knows what was consumed",
            patience=CLIENTS_PATIENCE,
        )

    def sample(self) -> None:
        """Waits until the broker, which samples its figures every ten seconds, has counted the last message."""
        until(lambda: "adm_live" in self.admin(["statsAll", "-a"]), "the topic is active")

    def meet(self) -> None:
        """Waits until the producer has told of itself."""
        asked = ["producerConnection", "-g", "adm_producer", "-t", "adm"]
        until(lambda: "not exist" not in self.admin(asked), "the producer is known", patience=CLIENTS_PATIENCE)

    def end(self) -> None:
        """Does nothing."""

    def _has_told(self, group: str, diff: int | None = None) -> bool:
        """Whether the broker has a group's offsets, that of its retry queue, too, and so many messages are left."""
        progress = self.admin(["consumerProgress", "-g", group])
        # a row begins with the topic; an error that names it does not
        return f"\n%RETRY%{group} " in progress and (diff is None or f"Diff Total: {diff}" in progress)


def ask_all(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Each command line as it stands in the sequence, and what it printed, masked."""
    with ExitStack() as stack:
        # consumerStatus leaves a directory where it is called
        log, cwd = cluster.directory / "mqadmin.log", cluster.directory
        process = stack.enter_context(running(VERSION, "Admin", "--stdin", log=log, cwd=cwd))
        admin = Admin(process, cluster.name_server)
        play = Play(cluster, stack, admin)
        for line in SEQUENCE.strip().splitlines():
            if line.startswith("!"):
                getattr(play, line[1:])()
                continue
            words = [word.format(**play.values) for word in line.split()]
            yield line, printed(admin(words), play.values, figures=STATUS if words[0] == "brokerStatus" else None)


def await_client(admin: Admin, group: str) -> str:
    """Waits until a group has a consumer; gives its client id."""

    def client() -> str | None:
        text = admin(["consumerConnection", "-g", group])
        found = re.search(r"^(?:\d+\s+)?(\S+@\S+)", text, re.MULTILINE)
        return found and found[1]

    known = until(client, f"{group} has a consumer", patience=CLIENTS_PATIENCE)
    assert known is not None
    return known


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
