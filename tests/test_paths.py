"""Paths of the Python API: an empty text is not the current directory, a URL is no directory of that name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rmqfast import AppendOptions, ClientConfig, EmbeddedCluster, Message, open_store
from rmqfast.acl.acl_files import AclFiles
from rmqfast.broker import BrokerConfig
from rmqfast.errors import ArgumentError
from rmqfast.mirror import Mirror
from rmqfast.paths import local_path
from rmqfast.remoting.tls import TlsOptions
from rmqfast.store import plan_clean, repair
from rmqfast.store.config import TopicConfigTable
from rmqfast.store.config.offsets import warning_of_lost_offsets
from rmqfast.tables import ingest

SMALL = AppendOptions(file_size=65536, queue_file_size=2000, index_slots=100, index_entries=400)
CALLS: dict[str, Callable[[str], Any]] = {
    "open_store": open_store,
    "append": lambda path: open_store(path, mode="a", options=SMALL),
    "commit_log_dirs": lambda path: open_store(".", commit_log_dirs=[path]),
    "repair": repair,
    "plan_clean": plan_clean,
    "export": lambda path: open_store(".").export(path),
    "export of lines": lambda path: open_store(".").export(path, format="jsonl"),
    "ingest": lambda path: ingest(path, "out"),
    "configuration read": TopicConfigTable.load,
    "configuration saved": lambda path: TopicConfigTable().save(path),
    "warning_of_lost_offsets": warning_of_lost_offsets,
    "cluster": EmbeddedCluster,
    "broker": lambda path: BrokerConfig({"storePathRootDir": path}),
    "mirror": lambda path: Mirror(path, name_server="127.0.0.1:1"),
    "offsets": lambda path: ClientConfig(local_offset_dir=path),
    "certificate": lambda path: TlsOptions(certificate=path, key="key.pem"),
    "trust": lambda path: TlsOptions(trust=path),
    "accounts": AclFiles,
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with open_store(tmp_path, mode="a", options=SMALL) as store:
        store.append(Message("orders", b"paid"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("text", ["", "s3://bucket/store", "s3a:/bucket/store", "file://elsewhere/store"])
@pytest.mark.parametrize("name", CALLS)
def test_no_call_takes_an_empty_path_or_a_url(name: str, text: str, store: Path) -> None:
    before = sorted(store.rglob("*"))
    with pytest.raises(ArgumentError, match="expected a ") as raised:
        CALLS[name](text)
    assert f"got '{text}'" in str(raised.value)
    assert sorted(store.rglob("*")) == before


def test_a_url_of_a_path_object_is_refused_as_well(store: Path) -> None:
    with pytest.raises(ArgumentError, match="got 's3:/bucket/out'"):
        ingest(open_store(store), Path("s3://bucket/out"))
    # a URL that only Spark writes to; an empty path
    with pytest.raises(ArgumentError, match="got hdfs://bucket/out") as raised:
        ingest(open_store(store), "hdfs://bucket/out")
    assert "rmqfast.spark.ingest" in raised.value.__notes__[0]
    with pytest.raises(ArgumentError, match="expected a path"):
        ingest(open_store(store), "")


def test_a_file_url_is_a_path(store: Path) -> None:
    with open_store(f"file://{store}") as opened:
        assert opened.path == store
        assert ingest(opened, f"file:{store.parent}/out%20of%20it").rows == 1
    assert (store.parent / "out of it" / "_SUCCESS").exists()


def test_a_directory_named_as_a_scheme_is_reached_with_a_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("./s3:/store", mode="a", options=SMALL).close()
    assert (tmp_path / "s3:" / "store" / "commitlog").is_dir()
    assert local_path("a:b", "path") == Path("a:b")
