"""Differences between operating systems stand in one crate and in one module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: How Rust asks which system it runs on, or calls one of its own.
_RUST = re.compile(
    r"\bcfg[^\]\n]*\b(?:unix|windows|target_(?:os|family|vendor|env))\b|\bconsts::OS\b"
    r"|\bos::\{?\s*(?:unix|linux|windows|fd)\b|\b(?:rustix|libc|nix|fs4|winapi_util|windows_sys)\b"
)
#: Modules of Python that not every system has.
_MODULES = {"fcntl", "grp", "msvcrt", "platform", "pwd", "resource", "select", "termios", "winreg"}
#: Names of `os`, `sys`, `time` and `socket` that not every system has, or that say which one it is.
_NAMES = re.compile(
    r"platform|uname|sysconf|sched_\w+|fork|register_at_fork|fchmod|fdatasync|statvfs|getloadavg|geteuid|getuid"
    r"|O_DIRECTORY|O_NOATIME|CLOCK_\w+|AF_UNIX|pread|pwrite|mkfifo"
)
_OF = {"os", "sys", "time", "socket"}


def asks_in_rust(code: str) -> bool:
    """Whether a file asks which system it runs on; its tests run on Linux, and comments may name any."""
    return _RUST.search(re.sub(r"//.*", "", code.partition("#[cfg(test)]")[0])) is not None


def asks_in_python(code: str) -> bool:
    """The same of a module."""
    return any(_names_asked(ast.parse(code)))


def _names_asked(tree: ast.AST) -> Iterator[bool]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield any(name.name in _MODULES for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module in _MODULES
            yield node.module in _OF and any(_NAMES.fullmatch(name.name) for name in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.value.id in _OF and _NAMES.fullmatch(node.attr) is not None
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.startswith(("/proc/", "/sys/"))


def test_one_crate_asks_which_system_it_runs_on() -> None:
    sources = [path for path in ROOT.glob("rust/*/src/**/*.rs") if asks_in_rust(path.read_text())]
    # how tests wait is no part of what is installed
    assert {path.relative_to(ROOT / "rust").parts[0] for path in sources} == {"os", "waiting"}


def test_one_module_asks_which_system_it_runs_on() -> None:
    modules = [path for path in ROOT.glob("python/rmqfast/**/*.py") if asks_in_python(path.read_text())]
    assert [path.name for path in modules] == ["system.py"]


@pytest.mark.parametrize(
    "code",
    [
        "#[cfg(not(unix))]",
        "if cfg!(windows) {}",
        '#[cfg_attr(windows, path = "w.rs")]',
        '#[cfg(target_vendor = "apple")]',
        "#[cfg(any(unix, test))]",
        "use std::os::unix::fs::FileExt;",
        "use std::os::{unix::fs};",
        "use rustix;",
        "std::env::consts::OS",
    ],
)
def test_a_question_of_rust_is_found(code: str) -> None:
    assert asks_in_rust(code)
    assert not asks_in_rust(f"fn main() {{}} // {code}\n#[cfg(test)]\nmod tests {{ {code} }}")


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    import fcntl",
        "from fcntl import flock",
        "import os, fcntl",
        "from sys import platform",
        "from os import fork",
        "import os\nos.sched_getaffinity(0)",
        "time.CLOCK_BOOTTIME",
        "socket.AF_UNIX",
        "open('/proc/self/maps')",
        "import platform",
    ],
)
def test_a_question_of_python_is_found(code: str) -> None:
    assert asks_in_python(code)
