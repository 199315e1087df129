"""Differences between operating systems. No other module checks on which system it runs.

Tests run on Linux. The code for macOS and Windows is type-checked, but has never run there.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = [
    "after_fork",
    "home_directory",
    "local_addresses",
    "lock_file",
    "milliseconds_since_boot",
    "monotonic",
    "owned_directory",
    "physical_memory",
    "return_free_memory",
    "set_mode",
    "sync_directory",
    "sync_file",
    "usable_cores",
]

# SIOCGIFADDR of Linux
_GET_ADDRESS = 0x8915
_IPV6_INTERFACES = Path("/proc/net/if_inet6")
_INTERFACES = Path("/sys/class/net")


def milliseconds_since_boot() -> int:
    """Returns the milliseconds since the machine was started, including sleep. No user can set this clock."""
    if sys.platform == "linux":
        nanoseconds = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    elif sys.platform == "win32":
        nanoseconds = time.monotonic_ns()
    else:
        # counts sleep, unlike Python's monotonic clock on macOS
        nanoseconds = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return nanoseconds // 1_000_000


if sys.platform == "win32":

    def monotonic() -> float:
        """Returns the seconds of a clock that never goes back."""
        return time.monotonic()

else:

    def monotonic() -> float:
        """Returns the seconds of `time.monotonic`, even if freezegun or time-machine has patched that function."""
        return time.clock_gettime(time.CLOCK_MONOTONIC)


def physical_memory() -> int:
    """Returns the bytes of the machine's memory. 4 GiB on Windows, where Python has no function for it."""
    if sys.platform == "win32":
        size = 4 << 30
    else:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return size


def return_free_memory() -> None:
    """Gives memory that was freed back to the system, where the C library keeps it otherwise (glibc)."""
    if sys.platform == "linux":
        # Imported here, since few programs need it.
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def open_files_limit() -> int | None:
    """Returns how many files this process may open. `None` without a limit, or if the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def memory_maps_limit() -> int | None:
    """Returns how many maps of memory a process may have. `None` if the system does not tell."""
    try:
        return int(Path("/proc/sys/vm/max_map_count").read_text("ascii"))
    except (OSError, ValueError):
        return None


def usable_cores() -> int:
    """Returns the number of cores that this process may use, which a container can limit."""
    if sys.platform == "linux":
        # respects the CPU set of a container
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return cores


def after_fork(callback: Callable[[], None]) -> None:
    """Registers a callback that runs in each forked process."""
    if sys.platform != "win32":
        # Windows has no fork
        os.register_at_fork(after_in_child=callback)


def home_directory() -> Path | None:
    """Returns the home directory of the account. None if it has none, for example in a container."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def set_mode(descriptor: int, mode: int) -> None:
    """Sets the mode of an open file, whatever the umask is."""
    if sys.platform != "win32":
        os.fchmod(descriptor, mode)


def sync_file(descriptor: int) -> None:
    """Flushes an open file to the disk, and also the cache of the drive."""
    if sys.platform == "darwin":
        # macOS's fsync leaves data in the drive's cache
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def sync_directory(directory: Path) -> None:
    """Flushes the entries of a directory to the disk."""
    # Windows cannot flush directories; NTFS journals their entries
    if sys.platform != "win32":
        opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            sync_file(opened)
        finally:
            os.close(opened)


def lock_file(file: IO[str]) -> None:
    """Locks an open file, so that other processes cannot, until it is closed."""
    if sys.platform == "win32":
        _lock_first_byte(file.fileno())
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def owned_directory(directory: Path) -> Iterator[None]:
    """Locks a directory, so that other processes cannot, until the block ends."""
    if sys.platform == "win32":
        # Windows cannot lock directories
        beside = directory.with_name(f"{directory.name}.lock")
        opened = os.open(beside, os.O_RDWR | os.O_CREAT)
    else:
        opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if sys.platform == "win32":
            _lock_first_byte(opened)
        else:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # the previous owner may have removed the directory before this lock, and another process created it again
            if not os.path.samestat(os.fstat(opened), directory.stat()):
                raise FileNotFoundError(directory)
        yield
    finally:
        os.close(opened)
        if sys.platform == "win32":
            # another process has locked it meanwhile
            with suppress(OSError):
                beside.unlink()


if sys.platform == "win32":

    def _lock_first_byte(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(error.errno, error.strerror) from error


if sys.platform == "linux":

    def local_addresses() -> list[str]:
        """Returns the addresses of this machine, IPv4 first, in the order in which Java lists network interfaces."""
        # Java lists interfaces in reverse order, and skips bridges
        names = [name for _, name in reversed(socket.if_nameindex()) if not (_INTERFACES / name / "bridge").exists()]
        ipv4 = [address for name in names if (address := _ipv4_address(name)) is not None]
        return ipv4 + _ipv6_addresses(names)

    def _ipv4_address(interface: str) -> str | None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            try:
                # an interface's name has at most 15 bytes
                answer = fcntl.ioctl(asked.fileno(), _GET_ADDRESS, struct.pack("256s", interface.encode()[:15]))
            except OSError:
                # the interface has no IPv4 address
                return None
        return socket.inet_ntoa(answer[20:24])

    def _ipv6_addresses(interfaces: list[str]) -> list[str]:
        try:
            lines = [line.split() for line in _IPV6_INTERFACES.read_text().splitlines()]
        except OSError:
            # a kernel without IPv6
            return []
        addresses = [
            (interfaces.index(line[5]), str(ip_address(bytes.fromhex(line[0]))))
            for line in lines
            if line[5] in interfaces
        ]
        return [address for _, address in sorted(addresses, key=lambda each: each[0])]

else:

    def local_addresses() -> list[str]:
        """Returns the IPv4 addresses of this machine."""
        try:
            return [str(known[4][0]) for known in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
        except OSError:
            # the host's name has no address
            return []
