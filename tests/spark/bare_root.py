"""A worker of a Spark cluster in a root file system without Python, whose `/tmp` forbids execution."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pyspark
import pytest

from tests.spark.cluster import Cluster
from tests.waiting import until

_SPARK = Path(pyspark.__file__).parent
_TMP = "tmp"
#: What Java needs of this machine, read only. Python is in none of these.
_LIBRARIES = ("x86_64-linux-gnu", "aarch64-linux-gnu")
_SHARED = (
    "/lib64",
    *(f"{lib}/{name}" for lib in ("/lib", "/usr/lib") for name in _LIBRARIES),
    "/etc/java-17-openjdk",
    "/dev",
)
#: What Spark's worker and Hadoop's files call besides Java.
_TOOLS = ("/bin/sh", "/usr/bin/env", "/usr/bin/nice", "/usr/bin/ps", "/bin/rm", "/bin/chmod", "/bin/ls")


def skip_without_roots() -> None:
    """Skips a test where this machine lets nobody make a root."""
    asked = ["unshare", "--mount", "chroot", "/", "true"]
    if shutil.which("unshare") is None or subprocess.run(asked, capture_output=True, check=False).returncode:
        pytest.skip("roots are made and entered by root, with unshare and chroot")


def start_bare_worker(cluster: Cluster, directory: Path, host: str, shared: Sequence[Path]) -> None:
    """Starts a worker of one core, and waits until the master knows it.

    Args:
        cluster: Its master; ends the worker with itself.
        directory: Where its root is made.
        host: Its host.
        shared: Directories that executors see at the same place, and may write to.
    """
    root, java = directory / f"root-{host}", Path(shutil.which("java") or "").resolve().parents[1]
    root.mkdir(parents=True)
    lines = [f"mount -t tmpfs tmpfs {root}"]
    for place in (path for path in map(Path, (*_SHARED, str(java), str(_SPARK / "jars"))) if path.exists()):
        # what is mounted is a directory, also where its name is a link
        lines += [f"mkdir -p {root}{place}", f"mount --bind -o ro {place.resolve()} {root}{place}"]
    for tool in map(Path, _TOOLS):
        lines += [f"mkdir -p {root}{tool.parent}", f"cp {tool.resolve()} {root}{tool}"]
    lines += [f"mkdir -p {root}/proc {root}/{_TMP} {root}/work {root}/etc", f"mount -t proc proc {root}/proc"]
    lines += [f"mount -t tmpfs -o noexec tmpfs {root}/{_TMP}"]
    for place in shared:
        lines += [f"mkdir -p {root}{place}", f"mount --bind {place} {root}{place}"]
    # Hadoop asks who it is
    lines += [f"echo 'root:x:0:0:root:/:/bin/sh' > {root}/etc/passwd", f"cp /etc/hosts {root}/etc/hosts"]
    lines.append(f'exec {shutil.which("chroot")} "$@"')
    command = [str(java / "bin" / "java"), "-Xmx256m", "-cp", f"{_SPARK / 'jars'}/*"]
    command += ["org.apache.spark.deploy.worker.Worker", "--host", host, "--webui-port", "0"]
    command += ["--cores", "1", "--memory", "1g", "--work-dir", "/work", cluster.master]
    # as the script that usually starts a worker finds it out
    scala = next((_SPARK / "jars").glob("spark-core_*.jar")).name.removeprefix("spark-core_").partition("-")[0]
    variables = {"PATH": "/usr/bin:/bin", "JAVA_HOME": str(java), "SPARK_HOME": str(_SPARK), "HOME": "/work"}
    variables |= {"SPARK_LOCAL_IP": host, "SPARK_SCALA_VERSION": scala, "LANG": "C.UTF-8"}
    # what is mounted ends with the process, however that ends
    wrapped = ["unshare", "--mount", "sh", "-ec", "\n".join(lines), "sh", str(root), *command]
    log = directory / f"bare-{host}.log"
    process = cluster.add(wrapped, log, variables)

    def is_registered() -> bool:
        assert process.poll() is None, log.read_text()
        return "Successfully registered with master" in log.read_text()

    until(is_registered, log.read_text)
