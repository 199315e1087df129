"""Checks of an installed wheel on a machine with nothing else; they need neither pytest nor this source tree.

    python smoke.py STORE WORKPLACE [EXTRA]

STORE is the store of a real broker, with the topic `fx_plain`. Each check is a line on standard output, and the exit
code is 0 if all passed.
"""

from __future__ import annotations

import ctypes
import json
import secrets
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple


class Place(NamedTuple):
    """The paths that a check reads from and writes to."""

    store: Path
    workplace: Path


class _Array(ctypes.Structure):
    """Arrow's C data interface, as far as it is needed without pyarrow."""


_Release = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("numbers", ctypes.c_int64 * 4),
    ("pointers", ctypes.c_void_p * 3),
    ("release", _Release),
    ("private", ctypes.c_void_p),
]


class _Stream(ctypes.Structure):
    _fields_ = (
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Array))),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private", ctypes.c_void_p),
    )


def rows(scan: Any) -> int:
    """The rows of a scan, read as any reader of Arrow streams does."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    capsule = scan.__arrow_c_stream__()
    address = pointer_of(capsule, b"arrow_array_stream")
    assert address is not None
    stream, array, total = _Stream.from_address(address), _Array(), 0
    while True:
        assert stream.get_next(address, ctypes.byref(array)) == 0
        if not array.release:
            return total
        total += array.length
        array.release(array)


def scans_a_store(place: Place) -> str:
    """Of a real broker, each queue to its end."""
    import rmqfast

    with rmqfast.open_store(place.store) as store:
        topics = store.topics()
        expected = {topic: sum(high - low for low, high in queues.values()) for topic, queues in topics.items()}
        assert {topic: rows(store.scan(topic)) for topic in topics} == expected
        assert not store.verify().damage
    return f"{sum(expected.values())} messages"


def appends_and_recovers(place: Place) -> str:
    """Two thousand messages, and the store opened again."""
    import rmqfast

    directory = place.workplace / "appended"
    with rmqfast.open_store(directory, mode="a") as store:
        for number in range(2000):
            store.append(rmqfast.Message("orders", b"%d" % number, tags="paid"))
    with rmqfast.open_store(directory) as store:
        assert rows(store.scan("orders", tags="paid")) == 2000
    return "2000 messages"


def sends_and_consumes(place: Place) -> str:
    """Through a broker of this process, to a push consumer."""
    import rmqfast

    bodies: set[bytes] = set()
    done = threading.Event()

    def listener(messages: tuple[Any, ...], _: Any) -> Any:
        bodies.update(message.body for message in messages)
        if len(bodies) == 100:
            done.set()
        return rmqfast.ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    with rmqfast.EmbeddedCluster(place.workplace / "cluster") as cluster:
        with rmqfast.Producer("shop", name_server=cluster.name_server) as producer:
            for number in range(100):
                producer.send(rmqfast.Message("orders", b"%d" % number, tags="paid"))
        consumer = rmqfast.PushConsumer("billing", name_server=cluster.name_server)
        consumer.subscribe("orders", "paid")
        consumer.register_message_listener(listener)
        consumer.start()
        try:
            assert done.wait(120), f"{len(bodies)} of 100 messages came"
        finally:
            consumer.shutdown()
    return "100 messages"


def tells_its_version(place: Place) -> str:
    """By its command, which needs no extra for that."""
    command = Path(sysconfig.get_path("scripts"), "rmqfast")
    arguments = [str(command)] if command.exists() else [sys.executable, "-m", "rmqfast"]
    result = subprocess.run([*arguments, "--version"], capture_output=True, text=True, check=False)
    import rmqfast

    assert rmqfast.__version__ in result.stdout, result.stdout + result.stderr
    return result.stdout.strip()


def a_panic_is_an_exception(place: Place) -> str:
    """Each platform's build unwinds in its own way."""
    from rmqfast._native._rmqfast import panic

    try:
        panic("on request")
    except BaseException as error:  # noqa: BLE001 - a PanicException is no Exception
        said = f"{type(error).__name__}: {error}"
    assert said == "PanicException: on request"
    return said


def arrow(place: Place) -> str:
    """A scan as a table of Arrow."""
    import rmqfast

    with rmqfast.open_store(place.store) as store:
        return f"{store.scan('fx_plain').to_arrow().num_rows} rows"


def pandas(place: Place) -> str:
    """A scan as a frame of pandas."""
    import rmqfast

    with rmqfast.open_store(place.store) as store:
        return f"{len(store.scan('fx_plain').to_pandas())} rows"


def polars(place: Place) -> str:
    """A scan as a frame of Polars."""
    import rmqfast

    with rmqfast.open_store(place.store) as store:
        return f"{store.scan('fx_plain').to_polars().height} rows"


def duckdb(place: Place) -> str:
    """A scan that DuckDB queries."""
    import duckdb as engine

    import rmqfast

    with rmqfast.open_store(place.store) as store:
        plain = store.scan("fx_plain").to_arrow()  # noqa: F841 - the query names it
        relation = engine.sql("SELECT count(*) FROM plain")
        assert relation is not None
        return f"{relation.fetchall()[0][0]} rows"


def spark(place: Place) -> str:
    """The package imports with PySpark, and has the jar; what the jar does is asked of a JVM."""
    import rmqfast.spark

    jar = rmqfast.spark.jar_path()
    assert jar is not None, "the wheel has no jar"
    return jar.name


def cli(place: Place) -> str:
    """A command that shows a table."""
    command = [sys.executable, "-m", "rmqfast", "store", "info", str(place.store)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "fx_plain" in result.stdout
    return "store info"


def broker(place: Place) -> str:
    """A broker that asks for accounts, which stand in a file of YAML."""
    import rmqfast

    home = place.workplace / "secured"
    (home / "conf").mkdir(parents=True)
    key, secret = "RocketMQ", secrets.token_hex()
    account = {"accessKey": key, "secretKey": secret, "admin": True}
    (home / "conf/plain_acl.yml").write_text(json.dumps({"accounts": [account]}))  # which is YAML, too
    with rmqfast.EmbeddedCluster(config={"aclEnable": "true", "rocketmqHome": str(home)}) as cluster:
        config = rmqfast.ClientConfig(access_key=key, secret_key=secret)
        with rmqfast.Producer("shop", name_server=cluster.name_server, config=config) as producer:
            return producer.send(rmqfast.Message("orders", b"paid")).status.value


def otel(place: Place) -> str:
    """The package imports with OpenTelemetry."""
    import rmqfast.otel

    return rmqfast.otel.__name__


def dashboard(place: Place) -> str:
    """The dashboard serves its login, with the files that its pages need."""
    from urllib.request import urlopen

    import rmqfast
    from rmqfast.dashboard import Dashboard

    with rmqfast.EmbeddedCluster() as cluster:
        config = rmqfast.ClientConfig(name_server=cluster.name_server)
        with Dashboard(config, port=0) as running:
            for path in ("login", "static/style.css"):
                with urlopen(f"http://{running.address}/{path}") as answer:
                    assert answer.read()
            return running.address


def delta(place: Place) -> str:
    """A store as a Delta table, which deltalake reads."""
    from deltalake import DeltaTable

    from rmqfast.tables import ingest

    out = place.workplace / "delta"
    written = ingest(place.store, out, ["fx_plain"], format="delta")
    # of the log alone: pyarrow's threads, which read files through Python, may abort the end of a process
    rows = DeltaTable(out).count()
    assert rows == written.rows > 0
    return f"{rows} rows"


def iceberg(place: Place) -> str:
    """A store as an Iceberg table, up to its catalog: those of pyiceberg need a server or further libraries."""
    from rmqfast.errors import RmqError
    from rmqfast.tables import ingest

    options = {"type": "rest", "uri": "http://127.0.0.1:1"}
    try:
        ingest(place.store, "db.messages", format="iceberg", options=options)
    except RmqError as error:
        said = f"{type(error).__name__}: {error}"
    assert "127.0.0.1" in said
    return said


ALWAYS: tuple[Callable[[Place], str], ...] = (
    scans_a_store,
    appends_and_recovers,
    sends_and_consumes,
    tells_its_version,
    a_panic_is_an_exception,
)
EXTRAS = {
    check.__name__: check
    for check in (arrow, pandas, polars, duckdb, spark, cli, broker, otel, dashboard, delta, iceberg)
}


def run(checks: Iterable[Callable[[Place], str]], store: str, workplace: str) -> int:
    """Runs each to its end; 0 if all passed."""
    place = Place(Path(store), Path(workplace))
    place.workplace.mkdir(parents=True, exist_ok=True)
    failed = 0
    for check in checks:
        try:
            line = f"passed {check.__name__}: {check(place)}"
        except BaseException as error:  # noqa: BLE001 - the next check shall still run
            failed += 1
            line = f"failed {check.__name__}: {type(error).__name__}: {error}"
        sys.stdout.write(line.replace("\n", " ") + "\n")
        sys.stdout.flush()
    return 1 if failed else 0


def main(store: str, workplace: str, extra: str = "") -> int:
    """Runs what was asked for."""
    return run([EXTRAS[extra]] if extra else ALWAYS, store, workplace)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
