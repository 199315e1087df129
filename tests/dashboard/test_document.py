"""The page about the dashboard: its code runs, and it names each page that there is."""

from __future__ import annotations

import re
import signal
import subprocess

import pytest

from rmqfast import EmbeddedCluster
from rmqfast.dashboard.renderer import MENU
from tests.cli.command_line import COMMAND
from tests.examples.documents import ROOT

from .visitor import Visitor

PAGE = (ROOT / "docs" / "dashboard.md").read_text(encoding="utf-8")


def test_it_names_each_page() -> None:
    told = set(re.findall(r"`(/[a-z-]*)`", PAGE))
    assert set(MENU) <= told


def test_its_code_runs(cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(code.replace("127.0.0.1:9876", cluster.name_server), {})  # noqa: S102
    address, password = capsys.readouterr().out.split()
    assert address.startswith("127.0.0.1:")
    assert len(password) >= 16


def test_the_command_serves_until_it_is_ended(cluster: EmbeddedCluster) -> None:
    command = [*COMMAND, "dashboard", "-n", cluster.name_server, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.fullmatch(r"ready dashboard=http://([^/]+)/ password=(\S+)\n", process.stdout.readline())
        assert found is not None
        with Visitor(found[1]) as visitor:
            assert visitor.log_in(found[2]).status == 303
            assert visitor.get("/groups").status == 200
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    assert process.returncode == 0
    assert errors.endswith("stopped\n")
