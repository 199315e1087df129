"""The Java of the documents runs with RocketMQ's own client."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from rmqfast import Admin, EmbeddedCluster
from tests.interop import rocketmq

from .documents import ROOT, with_readers

pytestmark = pytest.mark.long
VERSION = "4.9.4"
LIBRARIES = ROOT / "tests/interop/target" / VERSION / "lib"
#: Each page, and the topic that its producer has sent to in the end: that of security.md is not started.
PAGES = {"broker.md": "orders", "coming-from/java.md": "orders", "security.md": None}
#: What stands around a block: the reader's imports, and a secret.
PROGRAM = """
import org.apache.rocketmq.acl.common.*;
import org.apache.rocketmq.client.producer.*;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.remoting.RPCHook;

public class Program {
    public static void main(String[] arguments) throws Exception {
        String secret = "12345678";
        %s
        producer.shutdown();
    }
}
"""


@pytest.mark.parametrize("page", PAGES)
def test_the_block_of_a_page_runs(page: str, tmp_path: Path) -> None:
    rocketmq.build(VERSION)
    (block,) = java_of(page)
    with EmbeddedCluster() as cluster:
        here = dict.fromkeys(("127.0.0.1:9876", "10.0.0.1:9876", "10.0.0.5:9876"), cluster.name_server)
        (tmp_path / "Program.java").write_text(PROGRAM % with_readers(block, here))
        command = ["java", f"-Duser.home={tmp_path}", "-cp", f"{LIBRARIES}/*", "Program.java"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        with Admin(name_server=cluster.name_server) as admin:
            assert PAGES[page] is None or PAGES[page] in admin.topics.all()


def test_each_page_with_java_is_among_them() -> None:
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    # that of testing.md needs Docker: tests/cli/test_image.py starts what it starts
    assert {page for page in pages if java_of(page)} == {*PAGES, "testing.md"}


def java_of(page: str) -> list[str]:
    return re.findall(
        r"^```java\n(.*?)^```$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
