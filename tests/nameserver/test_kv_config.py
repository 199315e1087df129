"""Texts by namespace and key, and their file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from rmqfast.errors import CorruptError, ResponseError
from rmqfast.nameserver import KVConfigManager, NameServer, NamesrvConfig, kv_config
from tests.nameserver.registration import ask


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kvConfig.json"


def test_texts_survive_a_restart(server: NameServer, config: NamesrvConfig) -> None:
    for key in ("b", "a", "中"):
        assert ask(server, 100, {"namespace": "n", "key": key, "value": f"v-{key}\n"}).code == 0
    assert ask(server, 102, {"namespace": "n", "key": "b"}).code == 0
    again = NameServer(config)
    assert ask(again, 101, {"namespace": "n", "key": "中"}).ext_fields == {"value": "v-中\n"}
    assert ask(again, 219, {"namespace": "n"}).body == ask(server, 219, {"namespace": "n"}).body
    assert ask(again, 101, {"namespace": "n", "key": "b"}).remark == "No config item, Namespace: n Key: b"


@pytest.mark.parametrize("text", ["{", '{"configTable":[]}', '{"configTable":{"n":1}}', "[]"])
def test_a_file_that_cannot_be_read_stops_the_start(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(CorruptError, match=r"kvConfig\.json"):
        KVConfigManager.load(path)
    assert path.read_text() == text


def test_there_is_room_for_so_much(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_config, "MAX_KV_CHARACTERS", 1000)
    manager = KVConfigManager(path)
    put = 0
    with suppress(ResponseError):
        for put in range(100):
            manager.put(f"n{put % 3}", f"k{put}", "")
    assert 5 < put < 20
    manager = KVConfigManager.load(path)
    with pytest.raises(ResponseError, match="no room"):
        manager.put("n0", "long", "x" * 500)
    for number in range(put):
        manager.delete(f"n{number % 3}", f"k{number}")
    for _ in range(10):
        manager.put("n0", "long", "x" * 500)
    assert path.stat().st_size < 1000


@pytest.mark.parametrize("name", ["a\nb", "\x00", "n" * 256, "\x7f"])
def test_a_name_is_short_and_prints(server: NameServer, name: str) -> None:
    assert ask(server, 100, {"namespace": name, "key": "k", "value": "v"}).code == 1
    assert ask(server, 100, {"namespace": "n", "key": name, "value": "v"}).code == 1
    assert ask(server, 219, {"namespace": "n"}).code == 22
