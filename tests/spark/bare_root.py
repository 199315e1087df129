"""A worker of a Spark cluster in a root file system without Python, whose `/tmp` forbids execution."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark
import pytest

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


class BareWorker:
    """A worker of one core.

    Args:
        directory: Where its root is made.
        master: The address of the master.
        host: Its host.
        shared: Directories that executors see at the same place, and may write to.
    """

    def __init__(self, directory: Path, master: str, host: str, shared: list[Path]) -> None:
        self.root = directory / f"root-{host}"
        self.log = directory / f"bare-{host}.log"
        java = Path(shutil.which("java") or "").resolve().parents[1]
        self.root.mkdir(parents=True)
        lines = [f"mount -t tmpfs tmpfs {self.root}"]
        for place in (*_SHARED, str(java), str(_SPARK / "jars")):
            if Path(place).exists():
                # what is mounted is a directory, also where its name is a link
                lines += [
                    f"mkdir -p {self.root}{place}",
                    f"mount --bind -o ro {Path(place).resolve()} {self.root}{place}",
                ]
        for tool in _TOOLS:
            lines += [f"mkdir -p {self.root}{Path(tool).parent}", f"cp {Path(tool).resolve()} {self.root}{tool}"]
        lines += [f"mkdir -p {self.root}/proc {self.root}/{_TMP} {self.root}/work {self.root}/etc"]
        lines += [f"mount -t proc proc {self.root}/proc", f"mount -t tmpfs -o noexec tmpfs {self.root}/{_TMP}"]
        for place in map(str, shared):
            lines += [f"mkdir -p {self.root}{place}", f"mount --bind {place} {self.root}{place}"]
        # Hadoop asks who it is
        lines += [f"echo 'root:x:0:0:root:/:/bin/sh' > {self.root}/etc/passwd", f"cp /etc/hosts {self.root}/etc/hosts"]
        command = [str(java / "bin" / "java"), "-Xmx256m", "-cp", f"{_SPARK / 'jars'}/*"]
        command += ["org.apache.spark.deploy.worker.Worker", "--host", host, "--webui-port", "0"]
        command += ["--cores", "1", "--memory", "1g", "--work-dir", "/work", master]
        lines.append(f'exec {shutil.which("chroot")} "$@"')
        environment = {"PATH": "/usr/bin:/bin", "SPARK_HOME": str(_SPARK), "JAVA_HOME": str(java)}
        # as the script that usually starts a worker finds it out
        core = next((_SPARK / "jars").glob("spark-core_*.jar")).name
        environment["SPARK_SCALA_VERSION"] = core.removeprefix("spark-core_").partition("-")[0]
        environment |= {"SPARK_LOCAL_IP": host, "HOME": "/work", "LANG": "C.UTF-8"}
        # what is mounted ends with the process, however that ends
        wrapped = ["unshare", "--mount", "sh", "-ec", "\n".join(lines), "sh", str(self.root), *command]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(wrapped, stdout=log, stderr=log, env=os.environ | environment)
        try:
            until(self._is_registered, self.log.read_text, patience=60)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _is_registered(self) -> bool:
        assert self._process.poll() is None, self.log.read_text()
        return "Successfully registered with master" in self.log.read_text()

    def close(self) -> None:
        """Ends the worker, which ends its executors."""
        self._process.terminate()
        try:
            self._process.wait(20)
        finally:
            self._process.kill()
            self._process.wait()
