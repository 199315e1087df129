"""Who may open the files of an owned store: its owner alone, unless it is told otherwise; the umask has no say."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from rmqfast import AppendOptions, Message, open_store
from rmqfast.broker import Broker
from rmqfast.errors import ArgumentError
from rmqfast.store.config import TopicConfig, TopicConfigTable
from tests.embedded.client import broker_config, send

TINY = AppendOptions(file_size=4096, queue_file_size=400, index_slots=10, index_entries=40)


@pytest.fixture(params=[0o000, 0o022])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    old = os.umask(request.param)
    yield request.param
    os.umask(old)


def modes(root: Path) -> dict[str, int]:
    found = {}
    for path in [root, *root.rglob("*")]:
        with suppress(FileNotFoundError):  # of a broker that is replacing it
            found[str(path.relative_to(root))] = stat.S_IMODE(path.stat().st_mode)
    return found


def written(root: Path, permission: int) -> dict[str, int]:
    """What is there once messages filled several files, a topic was saved and a lost index was made anew."""
    options = replace(TINY, file_permission=permission)
    with open_store(root, mode="a", options=options) as store:
        for number in range(60):
            store.append(Message("orders", b"x" * 100, keys=str(number)))
        topics = TopicConfigTable.load(root)
        topics.put(TopicConfig(topic_name="orders"), now=1)
        for _ in range(2):
            topics.save(root)
        found = modes(root)
    for path in (root / "index").iterdir():
        path.unlink()
    (root / "abort").touch(mode=permission)
    with open_store(root, mode="a", options=options) as store:
        assert store.recovery is not None
        return found | modes(root)


@pytest.mark.parametrize(("permission", "directory"), [(0o600, 0o700), (0o640, 0o750)])
def test_all_that_a_store_creates_has_its_permission(
    umask: int, permission: int, directory: int, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    found = written(root, permission)
    assert len([name for name in found if name.startswith("commitlog/")]) > 1
    expected = {name: directory if (root / name).is_dir() else permission for name in found}
    assert found == expected
    assert {"abort", "checkpoint", "lock", "config/topics.json", "config/topics.json.bak"} <= found.keys()


def test_a_permission_that_is_none_is_refused(tmp_path: Path) -> None:
    for wrong in (0o700, 0o440, 0o1600):
        options = replace(TINY, file_permission=wrong)
        with pytest.raises(ArgumentError, match=f"file_permission: expected a mode of 600 to 666, .* got {wrong:o}"):
            open_store(tmp_path / "store", mode="a", options=options)
    for text in ("700", "rw-r-----", "0640", "64"):
        with pytest.raises(ArgumentError, match="storeFilePermission: expected three octal digits, 600 to 666"):
            broker_config(tmp_path, storeFilePermission=text)


@pytest.mark.parametrize(
    ("config", "permission", "directory"), [({}, 0o600, 0o700), ({"storeFilePermission": "640"}, 0o640, 0o750)]
)
def test_a_brokers_store_has_what_its_configuration_says(
    umask: int, config: dict[str, str], permission: int, directory: int, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    with Broker(broker_config(root, **config)) as broker:
        assert send(broker.address, "orders", b"x", KEYS="k").code == 0
        found = modes(root)
    found |= modes(root)
    assert found == {name: directory if (root / name).is_dir() else permission for name in found}
    assert {"config/topics.json", "config/consumerOffset.json", "config/metadata.db"} <= found.keys()
