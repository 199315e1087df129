"""What operating systems do differently stands in one crate and in one module."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: How Rust asks which system it runs on, or calls one of its own.
_RUST = re.compile(
    r"\b(?:rustix|libc|winapi_util|fs4)::|\bos::(?:unix|linux|windows|fd)\b|\btarget_os\b|cfg\((?:unix|windows)\)"
)
_PYTHON = re.compile(
    r"\bsys\.platform\b|\bplatform\.system\b|\bos\.(?:name|uname|sysconf|sched_\w+|fork|register_at_fork|fchmod|statvfs)\b"
    r"|^import (?:fcntl|msvcrt|resource|termios|pwd|grp)\b",
    re.MULTILINE,
)


def test_one_crate_asks_which_system_it_runs_on() -> None:
    sources = [*ROOT.glob("rust/*/src/**/*.rs")]
    # tests run on Linux, and how they wait is no part of what is installed
    code = {path: path.read_text().partition("#[cfg(test)]")[0] for path in sources}
    crates = {path.relative_to(ROOT / "rust").parts[0] for path, text in code.items() if _RUST.search(text)}
    assert crates == {"os", "waiting"}


def test_one_module_asks_which_system_it_runs_on() -> None:
    modules = [*ROOT.glob("python/rmqfast/**/*.py")]
    assert [path.name for path in modules if _PYTHON.search(path.read_text())] == ["system.py"]
