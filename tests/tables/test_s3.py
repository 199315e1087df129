"""Tables on S3 have each message once, though the server is slow, busy or killed, or the ingest is."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow import fs

from rmqfast.errors import ArgumentError, RmqError, StoreIOError, TableConflictError
from rmqfast.tables import ingest
from rmqfast.tables.opening import Format
from tests.cli.command_line import run
from tests.tables.lakes import FORMATS
from tests.tables.s3_gate import S3Gate
from tests.tables.s3_lakes import S3Lake
from tests.tables.s3_server import SECRET, S3Server, file_system, gate_before, moto_in, versitygw_in
from tests.tables.stored_rows import append, scanned
from tests.tables.test_kills import check_kills


@pytest.fixture(scope="module", autouse=True)
def _no_search_for_keys() -> Iterator[None]:
    """Keys and regions are in options: nobody asks the machine's cloud for them, which takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server for the tests of this file."""
    with moto_in(tmp_path_factory.mktemp("moto")) as server:
        yield server


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path, moto: S3Server) -> S3Lake:
    """A place for tables of each format."""
    return S3Lake(tmp_path / "lake", request.param, moto.address)


@pytest.fixture
def parquet(tmp_path: Path, moto: S3Server) -> S3Lake:
    return S3Lake(tmp_path / "lake", "parquet", moto.address)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with 600 messages."""
    append(tmp_path / "store", 600)
    return tmp_path / "store"


def test_each_run_writes_what_is_new(store: Path, lake: S3Lake) -> None:
    assert lake.ingest(store).rows == 600
    again = lake.ingest(store)
    assert (again.rows, again.commits, again.files) == (0, 0, 0)
    append(store, 400, topics=4, start=600)
    assert lake.ingest(store, commit_bytes=20_000).rows == 400
    assert lake.ingest(store).rows == 0
    assert lake.rows() == scanned(store)


@pytest.mark.parametrize("rule", ["busy", pytest.param("slow", marks=pytest.mark.long)])
def test_a_busy_or_distant_store_takes_longer(store: Path, lake: S3Lake, moto: S3Server, rule: str) -> None:
    with gate_before(moto, rule) as address:
        assert replace(lake, address=address).ingest(store).rows == 600
    assert lake.ingest(store).rows == 0
    assert lake.rows() == scanned(store)


@pytest.mark.parametrize(
    "rule", ["gone-9", *(pytest.param(f"gone-{count}", marks=pytest.mark.long) for count in range(1, 22, 3))]
)
def test_an_ingest_into_a_store_that_goes_away_is_completed_by_the_next(
    store: Path, lake: S3Lake, moto: S3Server, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # whoever asks a store again and again finds it gone as well, only later
    monkeypatch.setattr("rmqfast.tables.remote_directory._MOST_ATTEMPTS", 1)
    with gate_before(moto, rule) as address, pytest.raises(StoreIOError, match="messages") as raised:
        replace(lake, address=address).ingest(store)
    assert raised.value.__notes__ == ["check the endpoint; the next run continues the table"]
    append(store, 100, start=600)
    assert lake.ingest(store).rows in {100, 700}
    assert lake.ingest(store).rows == 0
    assert lake.rows() == scanned(store)


@pytest.mark.long
@pytest.mark.parametrize("number", range(2, 40, 4))
def test_an_ingest_into_a_server_that_is_killed_is_completed_by_the_next(
    tmp_path: Path, store: Path, lake: S3Lake, number: int
) -> None:
    requests = itertools.count(1)
    with versitygw_in(tmp_path / "objects") as server, S3Gate(server.address) as gate:

        def kill(_method: str, _path: str) -> None:
            if next(requests) == number:
                server.kill()

        gate.rule = kill
        with _waiting_ingest() as process:
            _begin(process, store, replace(lake, address=gate.address))
            # it may have ended before
            assert process.wait() in {0, 1}
    append(store, 100, start=600)
    with versitygw_in(tmp_path / "objects") as server:
        again = replace(lake, address=server.address)
        assert again.ingest(store).rows in {100, 700}
        assert again.ingest(store).rows == 0
        assert again.rows() == scanned(store)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_rows_are_distinct_offsets_after_kills(store: Path, lake: S3Lake) -> None:
    check_kills(store.with_name("killed"), lake, 30, lake.address)


#: Requests of an ingest into Parquet: a part of their paths, and which one of them. The process is killed there.
MOMENTS = {
    "upload": ("/_rmqfast/new/", 2),
    "draft": ("/_rmqfast/commit.json", 1),
    "commit": ("/_rmqfast/commit.json", 2),
    "first-copy": ("/messages/day", 1),
    "last-copy": ("/messages/day", 3),
    "removal": ("?delete", 1),
    "success": ("/_SUCCESS", 1),
}


QUICK = {("upload", False), ("commit", True)}


@pytest.mark.parametrize(
    ("moment", "is_forwarded"),
    [
        pytest.param(moment, kept, marks=() if (moment, kept) in QUICK else pytest.mark.long)
        for moment in MOMENTS
        for kept in (False, True)
    ],
)
def test_a_killed_ingest_is_completed_by_the_next(
    store: Path, parquet: S3Lake, moto: S3Server, moment: str, is_forwarded: bool
) -> None:
    part, number = MOMENTS[moment]
    seen: list[str] = []
    with S3Gate(moto.address) as gate:
        lake = replace(parquet, address=gate.address)
        with _waiting_ingest() as process:

            def kill(method: str, path: str) -> None:
                if method in {"PUT", "POST"} and part in path:
                    seen.append(path)
                    if len(seen) == number:
                        process.kill()
                        process.wait()
                        if not is_forwarded:
                            raise ConnectionAbortedError

            gate.rule = kill
            _begin(process, store, lake)
            assert process.wait() == -signal.SIGKILL
    append(store, 100, start=600)
    is_committed = moment not in {"upload", "draft", "commit"} or (moment == "commit" and is_forwarded)
    assert parquet.ingest(store).rows == (100 if is_committed else 700)
    assert parquet.ingest(store).rows == 0
    assert parquet.rows() == scanned(store)
    assert _own_files(parquet) == {"commit.json"}


def test_another_ingest_meanwhile_fails_the_commit(store: Path, parquet: S3Lake) -> None:
    parquet.ingest(store)
    append(store, 500, start=600)
    others: list[int] = []

    def interfere(done: int, total: int) -> None:
        if done == total and not others:
            others.append(0)
            others[0] = parquet.ingest(store).rows

    with pytest.raises(TableConflictError, match="another ingest has written to it"):
        parquet.ingest(store, progress=interfere)
    assert others == [500]
    assert parquet.ingest(store).rows == 0
    assert parquet.rows() == scanned(store)
    assert _own_files(parquet) == {"commit.json"}


def test_a_table_of_others_is_only_written_if_asked(store: Path, parquet: S3Lake) -> None:
    parquet.ingest(store)
    files = file_system(parquet.address)
    files.delete_file(f"{_place(parquet)}/_rmqfast/commit.json")
    with pytest.raises(ArgumentError, match="mode append adds to it nevertheless"):
        parquet.ingest(store)
    assert parquet.ingest(store, mode="append").rows == 600
    assert len(parquet.rows()) == 1200


@pytest.mark.parametrize(
    ("out", "options", "message"),
    [
        ("s3://lake/a", {"acces_key": "x", "region": "r"}, r"arguments of pyarrow.fs.S3FileSystem: .*'acces_key'"),
        ("s3://lake/a", {"access_key": "x", "region": "r"}, "both access_key and secret_key must be provided"),
        ("s3://lake/a", {"anonymous": "maybe", "region": "r"}, "expected true or false as anonymous, got 'maybe'"),
        ("s3://lake/a", {"connect_timeout": "1s", "region": "r"}, "expected a number as connect_timeout, got '1s'"),
        ("s3://key:hidden@lake/a", {}, "expected s3://BUCKET/PATH, with all else in options"),
        ("s3://lake/a?secret_key=hidden", {}, "expected s3://BUCKET/PATH, with all else in options"),
        ("s3a://key:hidden@lake/a", {}, "expected s3a://BUCKET/PATH, with all else in options"),
        ("s3:///a", {}, "expected s3://BUCKET/PATH"),
        ("s3://lake/a#b", {}, "expected s3://BUCKET/PATH"),
        ("hdfs://names/a", {}, "out: expected a path, s3:// or gs://, got hdfs://names/a: pyarrow cannot copy files"),
        ("s3a://lake/a", {}, "out: expected a path, s3:// or gs://, got s3a://lake/a"),
        ("s3a://lake/a", {"access_key": "x"}, "options: expected none for s3a://, got access_key"),
    ],
)
def test_a_wrong_place_or_option_is_told(store: Path, out: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as raised:
        ingest(store, out, options=options)
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "options", "error", "message"),
    [
        ("iceberg", {"type": "nope"}, ArgumentError, "catalog: expected one that pyiceberg can load, got 'default'"),
        ("iceberg", {"type": "sql"}, ArgumentError, "URI missing"),
        ("iceberg", {"type": "sql", "uri": "sqlite:////absent/catalog.db"}, StoreIOError, "unable to open database"),
        ("iceberg", {"type": "rest", "uri": "http://127.0.0.1:1"}, StoreIOError, "Connection refused"),
        ("delta", {"AWS_REGION": "r", "AWS_ALLOW_HTTP": "maybe"}, StoreIOError, "failed to parse .maybe. as boolean"),
        ("delta", {"AWS_REGION": "r", "max_retries": "many"}, StoreIOError, "Failed to parse config"),
    ],
)
def test_a_wrong_option_of_a_library_is_told(
    store: Path, kind: Format, options: dict[str, str], error: type[RmqError], message: str
) -> None:
    with pytest.raises(error, match=message):
        ingest(store, "lake.a" if kind == "iceberg" else "s3://lake/a", format=kind, options=options)


def test_what_is_only_possible_on_this_machine_is_refused(tmp_path: Path, store: Path, parquet: S3Lake) -> None:
    with pytest.raises(ArgumentError, match="expected resume, error or append at a URL, got 'overwrite'"):
        parquet.ingest(store, mode="overwrite")
    with pytest.raises(ArgumentError, match="options: expected none for Parquet at a path, got access_key"):
        ingest(store, tmp_path / "out", options={"access_key": "x"})
    with pytest.raises(ArgumentError, match=r"source: expected a path of this machine.* got 's3://lake/store'"):
        parquet.ingest("s3://lake/store")
    assert not list(tmp_path.glob("out*"))


def test_the_command_line_writes_to_s3_itself(store: Path, parquet: S3Lake) -> None:
    options = [part for name, value in parquet.options.items() for part in ("--option", f"{name}={value}")]
    result = run("ingest", store, "--out", parquet.out(), "-o", "json", *options)
    assert (result.exit_code, json.loads(result.stdout)[0]["rows"]) == (0, 600)
    assert parquet.rows() == scanned(store)


def test_refused_keys_are_told_without_them(store: Path, lake: S3Lake, moto: S3Server) -> None:
    moto.check_keys(checked=True)
    try:
        with pytest.raises(StoreIOError) as raised:
            lake.ingest(store)
        options = [part for name, value in lake.options.items() for part in ("--option", f"{name}={value}")]
        result = run("ingest", store, "--out", lake.out(), "--format", lake.format, *options)
    finally:
        moto.check_keys(checked=False)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (3, "", 1)
    assert "check the keys and their rights" in result.stderr
    assert SECRET not in f"{raised.value}{raised.value.__notes__}{result.stderr}"


def test_a_missing_bucket_is_told(store: Path, lake: S3Lake) -> None:
    with pytest.raises(StoreIOError) as raised:
        replace(lake, bucket="absent").ingest(store)
    assert raised.value.__notes__ == ["create the bucket, or check the URL and the endpoint"]


@contextmanager
def _waiting_ingest() -> Iterator[subprocess.Popen[str]]:
    """A process that ingests when it gets arguments. It ends with the block."""
    code = "import json, sys; from rmqfast.tables import ingest; ingest(**json.loads(sys.stdin.readline()))"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _begin(process: subprocess.Popen[str], store: Path, lake: S3Lake) -> None:
    assert process.stdin
    arguments = {"source": str(store), "out": lake.out(), "format": lake.format, "options": lake.options}
    process.stdin.write(f"{json.dumps(arguments)}\n")
    process.stdin.flush()


def _place(lake: S3Lake) -> str:
    return lake.out().removeprefix("s3://")


def _own_files(lake: S3Lake) -> set[str]:
    """The names of files that an ingest keeps for itself."""
    selector = fs.FileSelector(f"{_place(lake)}/_rmqfast", recursive=True)
    return {info.base_name for info in file_system(lake.address).get_file_info(selector) if info.is_file}
