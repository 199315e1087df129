"""The compiler of a Python for musl: zig, which has musl's headers, so that none of glibc come between.

It compiles in a root of Debian: the programs that `make` calls run on glibc there, and those that zig compiled run on
musl, as the package `musl` has nothing but its loader and its library. Those for another processor run there, too, by
qemu, so that `configure` can try what it compiles. Do not install that package on the machine itself: libraries of
others take it for Alpine then.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from .built_python import Compiler
from .roots import DEBIAN

_ZIG = "/opt/zig"
#: zig links statically unless it is told not to, and a static Python loads no extension. It refuses `__DATE__`, as that
#: makes each build another.
_CC = f"{_ZIG}/zig cc -target {{triple}} -dynamic -Wno-date-time"
#: What the package needs of the standard library: `zlib`, `ctypes`, `sqlite3`.
_SOURCES = ("zlib", "libffi", "sqlite3")
_STEPS = """
export CFLAGS='-O2 -fPIC'
cd /src/zlib
CHOST={triple} ./configure --static --prefix=/opt/libs
make -s -j2 libz.a
make -s install
cd /src/libffi
./configure -q --prefix=/opt/libs --disable-shared --disable-docs --disable-multi-os-directory \
    --disable-exec-static-tramp --build={triple}
make -s -j2
make -s install
cd /src/sqlite3
./configure -q --disable-tcl --disable-readline --build={triple}
make -s sqlite3.c
cc $CFLAGS -c sqlite3.c
ar rc /opt/libs/lib/libsqlite3.a sqlite3.o
cp sqlite3.h /opt/libs/include
unset CFLAGS
export CPPFLAGS=-I/opt/libs/include LDFLAGS=-L/opt/libs/lib
"""
#: The check of getaddrinfo asks for IPv6, which a root without a network has not. zig's musl has two calls that the
#: older one of the root has not.
_FLAGS = "--build={triple} ac_cv_buggy_getaddrinfo=no ac_cv_func_preadv2=no ac_cv_func_pwritev2=no"


def zig(processor: str) -> Compiler:
    """The compiler for musl on a processor, as `aarch64`."""
    triple = f"{processor}-linux-musl"
    cc, steps, flags = (text.format(triple=triple) for text in (_CC, _STEPS, _FLAGS))
    packages = (f"musl:{DEBIAN[processor]}", "binutils", "tcl")
    return Compiler(f"zig-{processor}", cc, packages, _SOURCES, steps, flags, _binds)


def _binds() -> dict[Path, str]:
    """zig, where its package of Python is installed."""
    program = shutil.which("python-zig")
    if program is None:
        message = "missing: python-zig of the package ziglang, in PATH"
        raise FileNotFoundError(message)
    (folder,) = Path(program).parents[1].glob("lib/python3.*/site-packages/ziglang")
    return {folder: _ZIG}
