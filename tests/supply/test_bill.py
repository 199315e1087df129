"""The bills of materials: what is linked is listed as the lock file has it, and what is not is left out."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
JAR = ROOT / "python/rmqfast/spark/jars/rmqfast-columnar.jar"


@pytest.fixture(scope="module")
def bills(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """By name of the whole."""
    home = tmp_path_factory.mktemp("bills")
    command: list[str | Path] = [sys.executable, "-m", "tests.supply.bill", JAR, home]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return {path.name.removesuffix(".cdx.json"): json.loads(path.read_text()) for path in home.iterdir()}


def names(bill: dict[str, Any]) -> set[str]:
    return {component["name"] for component in bill["components"]}


def test_each_has_what_is_linked_and_nothing_that_only_builds_or_tests(bills: dict[str, dict[str, Any]]) -> None:
    assert names(bills["rmqfast-python"]) >= {"rmqfast-python", "rmqfast-store", "pyo3", "rustls", "ring", "zstd-sys"}
    assert names(bills["rmqfast-columnar"]) >= {"rmqfast-jvm", "rmqfast-store", "jni", "zstd-sys"}
    for bill in bills.values():
        assert names(bill) & {"proptest", "criterion", "tempfile", "rmqfast-waiting", "cc", "windows-sys"} == set()
    assert "pyo3" not in names(bills["rmqfast-columnar"])


def test_crates_have_the_version_and_the_hash_of_the_lock_file(bills: dict[str, dict[str, Any]]) -> None:
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    locked = {(each["name"], each["version"]): each.get("checksum") for each in packages}
    for bill in bills.values():
        for crate in bill["components"]:
            if crate["type"] != "file":
                hashes = [each["content"] for each in crate.get("hashes", [])]
                assert [locked[crate["name"], crate["version"]]] == (hashes or [None]), crate
                assert crate["licenses"]


def test_the_one_of_the_jar_has_each_file_of_it(bills: dict[str, dict[str, Any]]) -> None:
    files = {c["name"]: c["hashes"] for c in bills["rmqfast-columnar"]["components"] if c["type"] == "file"}
    assert "org/rmqfast/spark/RocketMQColumnar.class" in files
    assert [name.rpartition("/")[2] for name in files if name.endswith(".so")] == ["librmqfast_jvm.so"]
    assert all(len(hashes) == 1 for hashes in files.values())


def test_everything_is_needed_by_something(bills: dict[str, dict[str, Any]]) -> None:
    for name, bill in bills.items():
        needed = {each for entry in bill["dependencies"] for each in entry.get("dependsOn", [])}
        crates = {component["bom-ref"] for component in bill["components"] if component["type"] != "file"}
        assert crates == needed, name


def test_nothing_tells_where_it_was_made(bills: dict[str, dict[str, Any]]) -> None:
    assert str(ROOT) not in json.dumps(bills)
