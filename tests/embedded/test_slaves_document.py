"""The commands and the code of `docs/slaves.md` run as they stand, from its first line to the master that is lost."""

from __future__ import annotations

import re
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from rmqfast import Message, Producer, SendStatus
from rmqfast.remoting import RemotingClient, RequestCode
from tests.cli.test_server import end, serving
from tests.examples.documents import ROOT, blocks_of
from tests.examples.readers_shell import ReadersShell, line_with, sh_blocks
from tests.waiting import until

pytestmark = pytest.mark.long
DOCUMENT = "slaves.md"
START, PROMOTE = sh_blocks(DOCUMENT)
#: What a reader types between the two blocks, once the master is killed.
(CONSUME,) = re.findall(r"`(rmqfast consume .*?)`", (ROOT / "docs" / DOCUMENT).read_text(encoding="utf-8"))


def knows_orders(address: str) -> bool:
    """Whether a slave has got the topic."""
    with RemotingClient(address) as client:
        return b'"orders"' in client.ask(RequestCode.GET_ALL_TOPIC_CONFIG).body


def wait_for_slave(name_server: str) -> None:
    """Sends to a topic of its own until a slave is there: a reader types more slowly than a test."""
    with Producer("early", name_server=name_server) as producer:
        until(lambda: producer.send(Message("early", b"x")).status is SendStatus.SEND_OK)


def test_each_command_and_block_is_of_one_of_the_tests() -> None:
    assert [len(block) for block in sh_blocks(DOCUMENT)] == [8, 2]
    assert sum(block.language != "sh" for block in blocks_of(DOCUMENT)) == 1


def test_a_slave_is_started_in_the_same_process(tmp_path: Path) -> None:
    (program,) = (block.code for block in blocks_of(DOCUMENT) if block.language == "python")
    assert re.fullmatch(r"127\.0\.0\.1:\d+ \d+\n", ReadersShell(tmp_path, {}).python(program))


def test_a_slave_has_each_message_serves_it_and_becomes_the_master(tmp_path: Path) -> None:
    namesrv, master_file, run_master, slave_file, run_slave, create, produce, scan = START
    to_master, run_promoted = PROMOTE
    readers = {
        "rmqfast namesrv": "rmqfast namesrv --port 0",
        "listenPort=10921": "listenPort=0",
        # a send waits for as long as a test does
        "brokerRole=SYNC_MASTER": "brokerRole=SYNC_MASTER\nlistenPort=0\nslaveTimeout=60000",
        "/tmp/": f"{tmp_path}/",  # noqa: S108 - of the page
    }
    shell = ReadersShell(tmp_path, readers)
    with ExitStack() as servers:

        def serve(command: str) -> tuple[subprocess.Popen[str], dict[str, str]]:
            return servers.enter_context(serving(command=shell.words(command), env=shell.environment))

        name_server = serve(namesrv)[1]["name_server"]
        shell = ReadersShell(tmp_path, {"127.0.0.1:9876": name_server, **readers})
        shell.run(master_file)
        master, _ = serve(run_master)
        shell.run(slave_file)
        slave, at = serve(run_slave)
        shell.run(create)
        wait_for_slave(name_server)
        assert shell.run(produce).count("SEND_OK") == 2
        assert [line.split()[-1] for line in shell.run(scan).splitlines()[1:]] == ["paid", "shipped"]

        until(lambda: knows_orders(at["broker"]))
        master.kill()
        with shell.started(CONSUME) as consumer:
            line_with(consumer, "topic")
            assert {line_with(consumer, "orders").split()[-1] for _ in range(2)} == {"paid", "shipped"}
        end(slave, signal.SIGINT)

        shell.run(to_master)
        promoted, _ = serve(run_promoted)
        assert shell.run(produce).count("SEND_OK") == 2
        assert sorted(line.split()[-1] for line in shell.run(scan).splitlines()[1:]) == ["paid"] * 2 + ["shipped"] * 2
        end(promoted, signal.SIGINT)
