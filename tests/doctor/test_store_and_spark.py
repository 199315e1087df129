"""Faults of stores, of the machine and of Spark are found."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rmqfast.doctor import examine_store
from rmqfast.errors import StoreError
from tests.cli.command_line import COMMAND, run, run_process

STORE = "basic-4.9.4"
PathOf = Callable[[str], Path]


def names(path: Path) -> list[str]:
    """The names of the findings; whether the disk is full depends on the machine."""
    return [finding.name for finding in examine_store(path).findings if finding.name != "disk-full"]


def test_a_sound_store_has_no_finding(golden_store: PathOf) -> None:
    assert names(golden_store(STORE)) == []


def test_damage_is_told_with_its_place(golden_store_copy: PathOf) -> None:
    path = golden_store_copy(STORE)
    log = next((path / "commitlog").iterdir())
    with log.open("r+b") as file:
        file.seek(4096)
        file.write(bytes(64))
    findings = [each for each in examine_store(path).findings if each.name == "store-damaged"]
    assert findings
    assert f"{log} offset 3996: body crc at +8: expected " in findings[0].evidence
    done = run("doctor", path)
    assert done.exit_code == 1
    assert f"next: end its broker, then `rmqfast store repair {path}`" in done.stdout


def test_a_crash_is_advice_and_half_a_file_is_none(golden_store_copy: PathOf) -> None:
    path = golden_store_copy(STORE)
    (path / "abort").touch()
    topics = path / "config" / "topics.json"
    topics.with_suffix(".json.bak").write_bytes(topics.read_bytes())
    topics.write_text("{")
    findings = [each for each in examine_store(path).findings if each.name.startswith("store-")]
    assert [(each.level.value, each.name) for each in findings] == [
        ("problem", "store-damaged"),
        ("advice", "store-not-closed"),
        ("advice", "store-note"),
    ]
    assert findings[0].evidence.endswith("; topics.json.bak was read instead")
    assert findings[0].next_step.startswith("start its broker")
    assert findings[2].evidence.endswith("a broker deletes it when it starts after a crash")


def test_what_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        examine_store(tmp_path / "missing")
    done = run("doctor", tmp_path / "missing")
    assert done.exit_code == 3
    assert "missing" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_more_files_than_a_process_may_open(golden_store_copy: PathOf) -> None:
    path = golden_store_copy(STORE)
    for number in range(200):
        (path / "consumequeue" / "TopicTest" / str(number)).mkdir(parents=True, exist_ok=True)
        (path / "consumequeue" / "TopicTest" / str(number) / "00000000000000000000").touch()
    command = ["bash", "-c", 'ulimit -n 256 && exec "$@"', "bash", *COMMAND, "doctor", str(path), "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (finding,) = [each for each in json.loads(done.stdout)["findings"] if each["name"] == "limit-too-low"]
    assert done.returncode == 1
    assert finding["evidence"].startswith("a process may have 256 open files, and RocketMQ's broker would need one for")
    assert "ulimit -n 655350" in finding["next_step"]


def test_more_files_than_a_process_may_map(golden_store_copy: PathOf) -> None:
    path = golden_store_copy(STORE)
    most = int(Path("/proc/sys/vm/max_map_count").read_text("ascii"))
    if most > 100_000:
        pytest.skip("this machine allows many maps")
    for number in range(most // 2):
        (path / "index" / f"{number:017}").touch()
    evidence = [each.evidence for each in examine_store(path).findings if each.name == "limit-too-low"]
    assert any(each.startswith(f"a process may have {most:,} memory maps") for each in evidence)


@pytest.mark.spark
def test_spark_that_reads_has_no_finding() -> None:
    done = run_process("doctor", "--spark", PYSPARK_PYTHON=sys.executable)
    assert (done.returncode, done.stdout) == (0, "Spark on this machine: nothing found\n"), done.stderr


def fake_program(path: Path, text: str) -> Path:
    """A program that prints a text."""
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{text}'\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("text", ['openjdk version "1.8.0_392"', 'openjdk version "11.0.2"'])
def test_a_java_that_is_too_old(tmp_path: Path, text: str) -> None:
    fake_program(tmp_path / "bin" / "java", text)
    done = run_process("doctor", "--spark", "-o", "json", JAVA_HOME=str(tmp_path))
    (finding,) = json.loads(done.stdout)["findings"]
    assert (done.returncode, finding["name"]) == (1, "spark-java")
    version = "8" if "1.8" in text else "11"
    assert finding["evidence"] == f"JAVA_HOME={tmp_path} leads to Java {version}, and this Spark needs 17"


def test_no_java_another_python_and_another_spark(tmp_path: Path) -> None:
    python = fake_program(tmp_path / "python" / "python3", "3 8 0.1")
    done = run_process(
        "doctor",
        "--spark",
        "-o",
        "json",
        JAVA_HOME=str(tmp_path / "none"),
        PYSPARK_PYTHON=str(python),
        SPARK_HOME=str(tmp_path),
    )
    findings = {each["name"]: each for each in json.loads(done.stdout)["findings"]}
    assert sorted(findings) == ["spark-home", "spark-java", "spark-python"]
    assert "leads to no Java" in findings["spark-java"]["evidence"]
    assert "where Python and rmqfast are 3 8 0.1; here 3 " in findings["spark-python"]["evidence"]
    assert "has Spark no jars" in findings["spark-home"]["evidence"]


@pytest.mark.spark
def test_a_session_that_does_not_start(tmp_path: Path) -> None:
    """Its driver has too little memory: only a session shows it."""
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.memory 100m\n")
    done = run_process("doctor", "--spark", "-o", "json", SPARK_CONF_DIR=str(tmp_path), PYSPARK_PYTHON=sys.executable)
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["name"] == "spark-fails"
    assert finding["evidence"].startswith("no session starts: ")
