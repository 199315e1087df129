"""The compiler of a Python for musl: zig, which has musl's headers, so that none of glibc come between.

It compiles in a root of Debian: the programs that `make` calls run on glibc there, and those that zig compiled run on
musl, as the package `musl` has nothing but its loader and its library. Do not install that on the machine itself:
libraries of others take it for Alpine then.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from .built_python import Compiler

_ZIG = "/opt/zig"
#: zig links statically unless it is told not to, and a static Python loads no extension. It refuses `__DATE__`, as that
#: makes each build another.
_CC = f"{_ZIG}/zig cc -target x86_64-linux-musl -dynamic -Wno-date-time"
#: What the package needs of the standard library: `zlib`, `ctypes`, `sqlite3`.
_SOURCES = ("zlib", "libffi", "sqlite3")
_STEPS = """
export CFLAGS='-O2 -fPIC'
cd /src/zlib
CHOST=x86_64-linux-musl ./configure --static --prefix=/opt/libs
make -s -j2 libz.a
make -s install
cd /src/libffi
./configure -q --prefix=/opt/libs --disable-shared --disable-docs --disable-multi-os-directory \
    --disable-exec-static-tramp --build=x86_64-linux-musl
make -s -j2
make -s install
cd /src/sqlite3
./configure -q --disable-tcl --disable-readline --build=x86_64-linux-musl
make -s sqlite3.c
cc $CFLAGS -c sqlite3.c
ar rc /opt/libs/lib/libsqlite3.a sqlite3.o
cp sqlite3.h /opt/libs/include
unset CFLAGS
export CPPFLAGS=-I/opt/libs/include LDFLAGS=-L/opt/libs/lib
"""
#: The check of getaddrinfo asks for IPv6, which a root without a network has not. zig's musl has two calls that the
#: older one of the root has not.
_FLAGS = "--build=x86_64-linux-musl ac_cv_buggy_getaddrinfo=no ac_cv_func_preadv2=no ac_cv_func_pwritev2=no"


def _binds() -> dict[Path, str]:
    """zig, where its package of Python is installed."""
    program = shutil.which("python-zig")
    if program is None:
        message = "missing: python-zig of the package ziglang, in PATH"
        raise FileNotFoundError(message)
    (folder,) = Path(program).parents[1].glob("lib/python3.*/site-packages/ziglang")
    return {folder: _ZIG}


ZIG = Compiler("zig", _CC, ("musl", "binutils", "tcl"), _SOURCES, _STEPS, _FLAGS, _binds)
