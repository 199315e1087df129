"""A name server whose clock and files are the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmqfast.nameserver import NameServer, NamesrvConfig

__all__ = ["Clock", "clock", "config", "server"]


class Clock:
    """Milliseconds since 1970, as the test says; counts who looks."""

    def __init__(self) -> None:
        self.now = 1_800_000_000_000
        self.looks = 0

    def __call__(self) -> int:
        self.looks += 1
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def config(tmp_path: Path) -> NamesrvConfig:
    return NamesrvConfig(
        kv_config_path=str(tmp_path / "kvConfig.json"), config_store_path=str(tmp_path / "namesrv.properties")
    )


@pytest.fixture
def server(config: NamesrvConfig, clock: Clock) -> NameServer:
    return NameServer(config, now=clock)
