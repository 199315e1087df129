"""Peers on the JVM, built by Maven outside the repository; RocketMQ's DefaultMessageStore in its own process."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from data import scratch_dir
from peer import Failed, Missing, Peer

JAVA = Path(__file__).parent / "java"
OPENS = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.nio", "sun.nio.ch", "java.lang", "jdk.internal.ref")
]


def build(module: str, version: str = "") -> Path:
    """Builds one module below java/ if its sources are newer than its jars; returns its target directory.

    Args:
        module: Its directory.
        version: Of what it brings, where its pom leaves the choice.
    """
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise Missing(f"{tool} is not installed")
    target, sources = scratch_dir() / "java" / (f"{module}-{version}" if version else module), JAVA / module
    newest = max(file.stat().st_mtime for file in sources.rglob("*") if file.is_file())
    mark = target / "built"
    if not mark.exists() or mark.stat().st_mtime < newest:
        properties = [f"-Dbench.target={target}", *([f"-Dbench.version={version}"] if version else [])]
        command = ["mvn", "-q", "-B", "-f", str(sources / "pom.xml"), *properties, "package"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"mvn {module}: {(done.stdout + done.stderr).strip()[:300]}")
        mark.touch()
    return target


def java(module: str, heap: str, main: str, *arguments: str) -> list[str]:
    """The command that runs a class of a module."""
    target = build(module)
    logs = scratch_dir() / "logs"
    home = [f"-Duser.home={logs}", f"-Drocketmq.client.logRoot={logs}"]
    ratios = [f"-Drocketmq.broker.diskSpace{name}Ratio=0.97" for name in ("WarningLevel", "CleanForcibly")]
    classpath = f"{target}/classes:{target}/lib/*"
    return ["java", f"-Xms{heap}", f"-Xmx{heap}", *OPENS, *home, *ratios, "-cp", classpath, main, *arguments]


def store_peer() -> Peer:
    """RocketMQ's own store, answering `open`, `decoded`, `tagged` and `append`."""
    return Peer(java("rocketmq", "2g", "bench.StorePeer"), scratch_dir() / "logs" / "rocketmq.log")


def linked_copy(store: Path) -> Path:
    """Hard links to a store, in a directory of their own: RocketMQ adds files beside them and appends nothing."""
    copy = store.with_name(store.name + ".rocketmq")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(store, copy, copy_function=os.link)
    return copy


def appendable_copy(store: Path, copy: Path) -> None:
    """A store for a broker: hard links to its full files, copies of the last ones, to which a broker appends."""
    for directory, _, names in os.walk(store):
        target = copy / Path(directory).relative_to(store)
        target.mkdir(parents=True, exist_ok=True)
        for name in sorted(names)[:-1]:
            os.link(Path(directory) / name, target / name)
        for name in sorted(names)[-1:]:
            subprocess.run(["cp", "--sparse=always", str(Path(directory) / name), str(target)], check=True)
