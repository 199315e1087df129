"""Checks what `make wheels` made, without running it: `python -m tests.release.check DIRECTORY`.

Each artefact is a line: its size, the newest symbol of glibc that a library in it asks for, and what is wrong with
it. Then the tools of others look: auditwheel at the tags, abi3audit at the stable ABI, twine at what a registry would
refuse.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from . import artefacts


def main(directory: Path) -> int:
    """Prints the table; 0 if nothing is wrong."""
    problems = 0
    wheels = sorted(directory.glob("*.whl"))
    archives = sorted(directory.glob("*.tar.gz"))
    if not wheels or not archives:
        sys.exit(f"{directory}: {len(wheels)} wheels, {len(archives)} source archives: `make wheels` builds them")
    for path in (*wheels, *archives):
        found = list(artefacts.wheel_problems(path) if path in wheels else artefacts.sdist_problems(path))
        print(f"{path.stat().st_size / 1e6:6.2f} MB  {path.name}  {_needs(path) if path in wheels else ''}")
        for problem in (*found, *(_tools(path) if path in wheels else ())):
            problems += 1
            print(f"           {problem}")
    for problem in _said("twine", "check", "--strict", *map(str, (*wheels, *archives))):
        problems += 1
        print(f"           {problem}")
    print(f"{len(wheels) + len(archives)} artefacts, {problems} problems")
    return 1 if problems else 0


def _needs(path: Path) -> str:
    return ", ".join(
        f"{library.processor} {f'glibc {library.glibc[0]}.{library.glibc[1]}' if library.glibc > (0, 0) else 'musl'}"
        for library in artefacts.libraries(path)
    )


def _tools(path: Path) -> Iterator[str]:
    if not artefacts.is_free_threaded(path):  # which has no stable ABI
        yield from _said("abi3audit", "--strict", str(path))
    if "musllinux" not in path.name:  # auditwheel reads this machine's libc.so, which is a script of the linker
        yield from _other_tag(path)


def _other_tag(path: Path) -> Iterator[str]:
    """The name says which C library is needed at least; auditwheel says it of what is inside."""
    result = subprocess.run(("auditwheel", "show", str(path)), capture_output=True, text=True, check=False)
    tag = re.search(r'platform\s+tag:\s+"([\w.]+)"', result.stdout)
    if tag is None or tag[1] not in path.stem:
        yield f"auditwheel: expected the tag of the name, got {tag[1] if tag else result.stdout + result.stderr}"


def _said(*command: str) -> Iterator[str]:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        yield f"{' '.join(command[:2])}: {result.stdout}{result.stderr}".strip()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
