"""The examples run, on the embedded cluster and on RocketMQ's, and print what `docs/examples.md` shows."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import rmqfast
from rmqfast.admin import Admin
from tests.broker.interop.cluster import Cluster

from .documents import EXAMPLES, masked, outputs

SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "place")
TWO_TABLES = "starting_points"  # it starts a cluster with another configuration for the second one
OTHER_CLUSTERS = [pytest.param(name, marks=pytest.mark.timeout(900)) for name in ("4.9.4", "5.3.3", "5.5.0")]


def output_of(script: str, *words: object) -> str:
    path = os.pathsep.join(filter(None, (str(Path(rmqfast.__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{script}.py"), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_each_script_is_in_the_document() -> None:
    assert sorted(outputs()) == SCRIPTS


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_says_what_it_shows(
    script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = EXAMPLES / f"{script}.py"
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setattr("sys.argv", [str(path), "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert path.read_text(encoding="utf-8").split('"""')[1].strip() in told
    assert "--name-server" in told


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_prints_what_the_document_shows(script: str) -> None:
    assert masked(output_of(script)) == masked(outputs()[script])


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.parametrize("each_cluster", OTHER_CLUSTERS, indirect=True)
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_prints_the_same_on_rocketmq(
    each_cluster: Cluster, script: str, request: pytest.FixtureRequest
) -> None:
    words = ("--name-server", each_cluster.name_server, "--store", each_cluster.store)
    printed, expected = output_of(script, *words), outputs()[script]
    if script == TWO_TABLES:
        printed += "\n" + with_nothing_in_memory(each_cluster, script, *words)
    if script == TWO_TABLES and "5." in request.node.name:
        # it looks whether the page is in memory, whatever the ratio is
        first = expected.partition("\n\n")[0] + "\n"
        expected = first + "\n" + first.replace("Ratio=40", "Ratio=0")
    assert masked(printed) == masked(expected)


def with_nothing_in_memory(each_cluster: Cluster, script: str, *words: object) -> str:
    """The output while the broker takes no message to be in memory."""
    with Admin(name_server=each_cluster.name_server, timeout=20) as admin:
        admin.brokers.update_config("broker-a", {"accessMessageInMemoryMaxRatio": 0})
        try:
            return output_of(script, *words)
        finally:
            admin.brokers.update_config("broker-a", {"accessMessageInMemoryMaxRatio": 40})


def test_masks_leave_what_an_example_shows() -> None:
    assert masked("t2_19a2b3c4d5e@cpg_19a2b3c4d5e: log offset 5654, size 177") == "t2@cpg: log offset N, size N"
    assert masked("consumequeue, entry 32, 20 bytes from byte 640") == "consumequeue, entry 32, 20 bytes from byte 640"
