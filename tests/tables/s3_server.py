"""S3 servers on loopback, as programs of their own: moto, which keeps objects in memory, and versitygw, in files.

A thread of a test would not do: deltalake holds the interpreter's lock while it waits for an answer.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from pyarrow import fs

from tests.waiting import until

ROOT = Path(__file__).parents[2]
BUCKET = "lake"
KEY, SECRET = "lake-key", "lake-secret-9f2c"


@dataclass
class S3Server:
    """A server that runs."""

    address: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """Kills it, as a loss of power does."""
        self.process.kill()
        self.process.wait()

    def check_keys(self, *, checked: bool) -> None:
        """Has moto refuse all keys, none of which it knows, or accept any."""
        connection = HTTPConnection(self.address)
        connection.request("POST", "/moto-api/reset-auth", b"0" if checked else b"inf")
        assert connection.getresponse().status == 200
        connection.close()


def file_system(address: str) -> fs.S3FileSystem:
    """The objects of a server, as pyarrow has them."""
    return fs.S3FileSystem(
        access_key=KEY,
        secret_key=SECRET,
        endpoint_override=address,
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
    )


@contextmanager
def moto_in(directory: Path) -> Iterator[S3Server]:
    """Runs moto until the end of the block. The bucket is there."""
    log = directory / "moto.log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    server = S3Server("", process)
    try:
        found = until(lambda: re.search(r"http://(127\.0\.0\.1:\d+)", log.read_text()), log.read_text)
        server.address = found[1]  # type: ignore[index] # until returns what is true
        file_system(server.address).create_dir(BUCKET)
        yield server
    finally:
        server.kill()


@contextmanager
def versitygw_in(directory: Path) -> Iterator[S3Server]:
    """Runs versitygw over a directory until the end of the block. The bucket is there."""
    places = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    program = shutil.which("versitygw", path=places)
    assert program, "make test-long installs versitygw"
    (directory / BUCKET).mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = "{}:{}".format(*free.getsockname())
    environment = os.environ | {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
    command = [program, "--quiet", "--port", address, "posix", str(directory)]
    server = S3Server(address, subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL))
    try:
        until(lambda: _answers(address), f"{address} to answer")
        yield server
    finally:
        server.kill()


@contextmanager
def gate_before(server: S3Server, rule: str) -> Iterator[str]:
    """Runs a gate with one of its rules before a server until the end of the block. Yields its address."""
    command = [sys.executable, "-m", "tests.tables.s3_gate", server.address, rule]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        yield process.stdout.readline().strip()
        process.stdin.close()


def _answers(address: str) -> bool:
    host, _, port = address.partition(":")
    with suppress(OSError), socket.create_connection((host, int(port))):
        return True
    return False
