"""The page about the doctor names each finding, and its code runs."""

from __future__ import annotations

import re

import pytest

from rmqfast import Admin
from tests.cli.command_line import run
from tests.examples.documents import ROOT

from .examined import TOPIC, cluster_of

PAGE = ROOT / "docs" / "doctor.md"
_NAME = re.compile(r'(?:\bname=|_finding\(\s*)"([a-z0-9-]+)"')
_ADVISED = re.compile(r"`([a-z0-9-]+)`")


def test_the_page_names_each_finding_and_no_other() -> None:
    package = ROOT / "python" / "rmqfast"
    sources = [*(package / "doctor").glob("*_checks.py"), package / "doctor" / "store.py"]
    sources += [package / "doctor" / "alarm_rules.py", package / "spark" / "examination.py"]
    made = {name for path in sources for name in _NAME.findall(path.read_text(encoding="utf-8"))}
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    told = {name for row in rows for name in _ADVISED.findall(row.split("|")[1])}
    assert told == made


def test_its_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    with cluster_of() as cluster, Admin(name_server=cluster.name_server) as admin:
        admin.create_topic(TOPIC, queues=2, read_queues=1)
        exec(code.replace("127.0.0.1:9876", cluster.name_server), {})  # noqa: S102
        assert run("doctor", "-n", cluster.name_server).exit_code == 1
    assert capsys.readouterr().out.startswith(f"queues-never-read topic {TOPIC} ")
