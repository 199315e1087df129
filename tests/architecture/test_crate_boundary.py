"""Which crate may depend on what: the store knows nothing of Python."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@cache
def dependencies() -> dict[str, set[str]]:
    """The crates of the workspace, each with the names of its own dependencies, those of builds and of tests included.

    The one by which tests wait is left out, where it is a dependency of tests alone.
    """
    command = ["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"]
    metadata: dict[str, Any] = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    return {
        crate["name"]: {
            d["name"] for d in crate["dependencies"] if (d["name"], d["kind"]) != ("rmqfast-waiting", "dev")
        }
        for crate in metadata["packages"]
    }


def test_only_the_binding_names_pyo3() -> None:
    crates = dependencies()
    assert {name for name, uses in crates.items() if any(d.startswith("pyo3") for d in uses)} == {"rmqfast-python"}


def test_the_ways_into_python_and_into_the_jvm_know_nothing_of_each_other() -> None:
    crates = dependencies()
    assert {name for name, uses in crates.items() if "jni" in uses} == {"rmqfast-jvm"}
    assert {d for d in crates["rmqfast-jvm"] if d.startswith("rmqfast")} == {
        "rmqfast-client",
        "rmqfast-remoting",
        "rmqfast-spark",
        "rmqfast-store",
    }


def test_a_read_request_of_spark_stands_on_the_store_the_client_and_the_log_over_the_wire() -> None:
    below = {"rmqfast-client", "rmqfast-remoting", "rmqfast-replication", "rmqfast-store"}
    assert {d for d in dependencies()["rmqfast-spark"] if d.startswith("rmqfast")} == below


def test_one_crate_calls_the_operating_system() -> None:
    systems = {"fs4", "libc", "rustix", "winapi-util"}
    # how tests wait is no part of what is installed
    assert {name for name, uses in dependencies().items() if uses & systems} == {"rmqfast-os", "rmqfast-waiting"}


def test_the_binding_is_above_the_store() -> None:
    crates = dependencies()
    assert "rmqfast-store" in crates["rmqfast-python"]
    assert {d for d in crates["rmqfast-store"] if d.startswith("rmqfast")} == {"rmqfast-os"}
    assert not {d for d in crates["rmqfast-os"] if d.startswith("rmqfast")}


def test_the_store_knows_neither_network_nor_runtime() -> None:
    assert not dependencies()["rmqfast-store"] & {"tokio", "async-std", "hyper", "rustls", "socket2"}


def test_a_release_checks_overflows_as_tests_do() -> None:
    profiles = tomllib.loads((ROOT / "Cargo.toml").read_text())["profile"]
    assert profiles["release"]["overflow-checks"] is True
    assert profiles["dev"].get("overflow-checks", True) is True


def test_the_error_classes_that_rust_names_are_those_that_the_binding_raises() -> None:
    named = {
        name
        for crate in ("store", "remoting", "client", "spark")
        for name in re.findall(r'=> "(\w+Error)",', (ROOT / f"rust/{crate}/src/error.rs").read_text())
    }
    binding = (ROOT / "rust/python/src/error.rs").read_text()
    _, _, listed = binding.partition("\nclasses! {")
    assert named
    assert named <= set(re.findall(r"\w+Error", listed.partition("}")[0]))
