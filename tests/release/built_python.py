"""Builds a Python for a suite that has none so new: of Debian's source package, by the suite's compiler."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from .roots import Root

_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
#: Headers of what the standard library wraps, and what `configure` and `make` call.
_COMPILER = (
    "gcc",
    "libc6-dev",
    "make",
    "coreutils",
    "dash",
    "sed",
    "grep",
    "diffutils",
    "findutils",
    "mawk",
    "libc-bin",
)
_HEADERS = ("zlib1g-dev", "libffi-dev", "libssl-dev", "libsqlite3-dev", "libbz2-dev", "liblzma-dev")


def build(version: str, suite: str, source_suite: str, home: Path) -> Path:
    """The folder of a Python that runs on a suite; it is built once.

    Args:
        version: As `3.11`.
        suite: The suite it shall run on.
        source_suite: The suite that has its source.
        home: The folder of all roots.

    Raises:
        CalledProcessError: A compiler or a mirror says what is wrong.
    """
    builder = Root(f"build-python{version}-{suite}", suite, "x86_64", (*_COMPILER, *_HEADERS))
    root = builder.make(home)
    prefix = f"/opt/python{version}"
    if not (root / f"{prefix}/bin/python{version}").exists():
        _unpack(version, source_suite, root / "src")
        for name, target in (("usr/bin/cc", "gcc"), ("usr/bin/awk", "mawk")):
            if not (root / name).exists():
                (root / name).symlink_to(target)
        steps = (
            f"./configure -q --prefix={prefix} --without-ensurepip --disable-test-modules; make -s -j2; make -s install"
        )
        result = builder.run(home, ["/bin/sh", "-ec", f"cd /src; {steps}"], timeout=3600)
        if result.returncode != 0:
            raise subprocess.CalledProcessError(result.returncode, steps, result.stdout, result.stderr[-2000:])
    return root / prefix.lstrip("/")


def _mirror() -> str:
    """Where this machine gets its packages."""
    command = ("apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Origin: Debian")
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return next(line for line in lines if "security" not in line)


def _unpack(version: str, suite: str, folder: Path) -> None:
    """Debian's source packages come by apt alone, which is told of a suite that this machine need not have."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "lists").mkdir()
        (place / "sources.list").write_text(f"deb-src [signed-by={_KEYS}] {_mirror()} {suite} main\n")
        where = (f"Dir::Etc::SourceList={place}/sources.list", "Dir::Etc::SourceParts=/dev/null",
                 f"Dir::State::Lists={place}/lists", "APT::Sandbox::User=root")  # fmt: skip
        options = [word for option in where for word in ("-o", option)]
        subprocess.run(["apt-get", "-qq", *options, "update"], check=True)
        command = ["apt-get", "-qq", *options, "source", "--download-only", f"python{version}"]
        subprocess.run(command, check=True, cwd=place)
        (archive,) = place.glob("*.orig.tar.*")
        subprocess.run(["tar", "-xf", archive, "-C", folder, "--strip-components=1"], check=True)
