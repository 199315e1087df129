"""Root file systems of other machines: a Debian of another age or processor, with little in it.

mmdebstrap makes one in seconds; those of another processor run under qemu, which the kernel starts by `binfmt_misc`.
Both need root, and Debian's packages `mmdebstrap`, `qemu-user-static` and `binfmt-support`.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_NEEDED = ("mmdebstrap", "chroot", "mount")
#: What Debian calls the processors.
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
_BINFMT = Path("/proc/sys/fs/binfmt_misc")


class Root(NamedTuple):
    """A machine, by what is installed on it.

    Args:
        name: Its folder.
        suite: Of Debian.
        processor: As `aarch64`.
        packages: Of that suite; `musl:arm64` is one of another processor.
    """

    name: str
    suite: str
    processor: str
    packages: tuple[str, ...]

    @property
    def processors(self) -> list[str]:
        """Its own, then those of single packages."""
        others = {package.partition(":")[2] for package in self.packages} & set(DEBIAN.values())
        return [self.processor, *(name for name in DEBIAN if DEBIAN[name] in others and name != self.processor)]

    def path(self, home: Path) -> Path:
        return home / self.name

    def make(self, home: Path) -> Path:
        """Makes it, unless it is there.

        Args:
            home: The folder of all roots.

        Raises:
            CalledProcessError: mmdebstrap says what is wrong.
        """
        path = self.path(home)
        if not (path / "made").exists():
            shutil.rmtree(path, ignore_errors=True)
            _install(self, path)
            _complete(path)
            (path / "made").touch()
        for processor in self.processors:
            if processor != platform.machine():
                _emulate(processor)
        return path

    def run(
        self,
        home: Path,
        command: Sequence[str],
        *,
        binds: dict[Path, str] | None = None,
        environment: dict[str, str] | None = None,
        timeout: float = 900,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command in it, with folders of this machine at their place there.

        Args:
            home: As of `make`.
            command: The program and its arguments, as they are in there.
            binds: Folders of this machine, and where they are in there; read only.
            environment: Variables, besides those of every login.
            timeout: Seconds.
        """
        root = self.make(home)
        # in a mount namespace of its own: what is mounted ends with the command, however that ends
        script = [f"mount -t proc proc {root}/proc"]
        for source, place in (binds or {}).items():
            (root / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
            script.append(f"mount --bind -o ro {source} {root}{place}")
        script.append('exec chroot "$@"')
        inside = f"ip link set lo up; {'; '.join(script)}"
        wrapped = ["unshare", "--mount", "--net", "sh", "-ec", inside, "sh", str(root)]
        login = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "LANG": "C.UTF-8"}
        return subprocess.run(
            [*wrapped, *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            env=login | (environment or {}),
        )


def missing_tools() -> str | None:
    """The tools that are missing to make roots, and how to get them; None if none is."""
    if os.geteuid() != 0:
        return "roots are made and entered by root: run this as root"
    lacking = [tool for tool in _NEEDED if shutil.which(tool) is None]
    if lacking:
        return f"missing: {', '.join(lacking)}: apt-get install mmdebstrap qemu-user-static binfmt-support"
    return None


def _install(root: Root, path: Path) -> None:
    architectures = ",".join(DEBIAN[processor] for processor in root.processors)
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=extract", f"--architectures={architectures}"]
    # an index of the newest suite is often found expired, as mirrors are behind
    command += ['--aptopt=Acquire::Check-Valid-Until "false"', f"--include={','.join(root.packages)}"]
    subprocess.run([*command, root.suite, str(path)], check=True)


def _complete(path: Path) -> None:
    """Makes the files that package scripts make; those would have to run under emulation."""
    for folder in ("proc", "tmp", "root", "etc", "usr/local/bin"):
        (path / folder).mkdir(parents=True, exist_ok=True)
    for folder in ("bin", "lib", "lib64", "sbin"):  # of a suite whose packages have all below /usr
        if not (path / folder).exists() and (path / "usr" / folder).exists():
            (path / folder).symlink_to(f"usr/{folder}")
    (path / "tmp").chmod(0o1777)
    (path / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")  # Java and Hadoop ask who they are
    (path / "etc/group").write_text("root:x:0:\n")
    (path / "etc/hosts").write_text(f"127.0.0.1 localhost {platform.node()}\n")  # Spark looks its machine up
    shell = path / "bin/sh"
    if not shell.exists() and (path / "bin/dash").exists():
        shell.symlink_to("dash")


def _emulate(processor: str) -> None:
    if not (_BINFMT / "register").exists():
        subprocess.run(("mount", "-t", "binfmt_misc", "binfmt_misc", str(_BINFMT)), check=True)
    if not (_BINFMT / f"qemu-{processor}").exists():
        subprocess.run(("update-binfmts", "--enable", f"qemu-{processor}"), check=True)
