"""Mirrors over a way on which bits flip, and mirrors of brokers with names like those of directories."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from rmqfast import EmbeddedCluster, Message, Mirror, MirrorOptions, Producer
from rmqfast.errors import MirrorError
from tests.mirror.copies import SMALL, assert_same, caught_up, log_of
from tests.proxy import FlippedBit, Proxy
from tests.waiting import PATIENCE, until

CONFIG = dict(line.split("=") for line in SMALL)
#: Of a frame at the HA port: an offset and a size.
FRAME_HEAD = 12


def send(name_server: str, count: int) -> None:
    with Producer("p", name_server=name_server) as producer:
        for number in range(count):
            producer.send(Message("orders", b"body-%d-" % number * 10))


@contextmanager
def reached_over_a_proxy(
    directory: Path, flipped: Callable[[int], int | None], count: int
) -> Iterator[tuple[EmbeddedCluster, Proxy]]:
    """A broker with messages which others reach at another address, over proxies."""
    with EmbeddedCluster(directory, config=CONFIG | {"brokerIP1": "127.0.0.2"}) as cluster:
        broker = cluster.brokers[0]
        port, ha_port = int(broker.address.rpartition(":")[2]), broker.config.number("haListenPort")
        with (
            Proxy(f"127.0.0.1:{port}", listen=f"127.0.0.2:{port}"),
            Proxy(f"127.0.0.1:{ha_port}", lambda n: FlippedBit(flipped(n)), listen=f"127.0.0.2:{ha_port}") as proxy,
        ):
            send(cluster.name_server, count)
            yield cluster, proxy


def place_of(body: bytes, store: Path) -> int:
    """The offset of a body in a log that begins at 0."""
    return log_of(store)[1].index(body)


def test_a_bit_that_flips_on_the_way_is_read_once_more(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    places: dict[int, int] = {}
    with reached_over_a_proxy(tmp_path / "ours", places.get, 300) as (cluster, proxy):
        # in three bodies, over three connections
        for number, message in enumerate((250, 7, 120)):
            places[number] = FRAME_HEAD + place_of(b"body-%d-" % message * 10, tmp_path / "ours")
        with caplog.at_level(logging.WARNING), Mirror(tmp_path / "copies", name_server=cluster.name_server) as mirror:
            status = caught_up(mirror, tmp_path / "ours")
        assert_same(tmp_path / "ours", status.directory)
        assert proxy.connections > 1
    assert "no sound record" in caplog.text


def test_a_record_that_is_broken_twice_ends_a_mirror(tmp_path: Path) -> None:
    places: list[int] = []
    with reached_over_a_proxy(tmp_path / "ours", lambda _: places[0], 100) as (cluster, proxy):
        places.append(FRAME_HEAD + place_of(b"body-0-" * 10, tmp_path / "ours"))
        mirror = Mirror(tmp_path / "copies", name_server=cluster.name_server)
        with mirror, pytest.raises(MirrorError, match=r"no sound record at 0 of the log: .*crc"):
            assert mirror.wait(PATIENCE)
        assert proxy.connections == 2


@pytest.mark.parametrize("topics", [(), ("orders",)])
def test_a_bit_that_flips_in_what_is_compared_withdraws_nothing(
    tmp_path: Path, topics: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    options = MirrorOptions(if_broken="anew", topics=topics) if topics else MirrorOptions(if_broken="withdraw")
    places: dict[int, int] = {}
    with reached_over_a_proxy(tmp_path / "ours", places.get, 300) as (cluster, proxy):
        with Mirror(tmp_path / "copies", name_server=cluster.name_server, options=options) as mirror:
            until(lambda: mirror.is_caught_up() and mirror.status()[0].position == log_end(tmp_path / "ours"))
        first = proxy.connections
        assert first == 1
        # 40 bytes before a body, of which no checksum speaks
        places[first] = FRAME_HEAD + place_of(b"body-200-" * 10, tmp_path / "ours") - 40
        send(cluster.name_server, 50)
        with (
            caplog.at_level(logging.WARNING),
            Mirror(tmp_path / "copies", name_server=cluster.name_server, options=options) as mirror,
        ):
            until(lambda: mirror.is_caught_up() and mirror.status()[0].position == log_end(tmp_path / "ours"))
            status = mirror.status()[0]
        assert proxy.connections > first + 1
        assert "differs from the copy" in caplog.text
        assert (status.directory.name, status.withdrawn_bytes) == ("broker-a", 0)
        if not topics:
            assert_same(tmp_path / "ours", status.directory)


def log_end(store: Path) -> int:
    begin, log = log_of(store)
    return begin + len(log)


def is_caught_up_in(mirror: Mirror, name: str) -> bool:
    return mirror.status()[0].directory.name == name and mirror.is_caught_up()


def test_a_copy_that_is_begun_anew_takes_no_other_brokers_directory(tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    for name in ("a", "a.2", "a.3"):
        with EmbeddedCluster(tmp_path / name, config=CONFIG | {"brokerName": name}) as cluster:
            send(cluster.name_server, 20)
            with Mirror(copies, name_server=cluster.name_server) as mirror:
                caught_up(mirror, tmp_path / name)
    # `a` lost all of its store, twice
    for kept in ("a.4", "a.5"):
        with EmbeddedCluster(tmp_path / kept, config=CONFIG | {"brokerName": "a"}) as cluster:
            send(cluster.name_server, 10)
            with Mirror(copies, name_server=cluster.name_server, options=MirrorOptions(if_broken="anew")) as mirror:
                until(partial(is_caught_up_in, mirror, kept))
                assert_same(tmp_path / kept, mirror.status()[0].directory)
    for name in ("a.2", "a.3"):
        with EmbeddedCluster(tmp_path / name, config=CONFIG | {"brokerName": name}) as cluster:
            send(cluster.name_server, 20)
            with Mirror(copies, name_server=cluster.name_server) as mirror:
                status = caught_up(mirror, tmp_path / name)
            assert status.directory == copies / name
            assert_same(tmp_path / name, copies / name)
