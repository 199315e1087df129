"""RocketMQ's C++ client: librocketmq, as a wheel of its Python wrapper brings it; no compiler is needed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.broker.interop.cluster import Cluster

from .outsider import TARGET, Outsider, Rows, install_once, play_program

_SOURCE = Path(__file__).parents[1] / "cpp"
_PLACE = TARGET / "cpp"
_PYTHON = _PLACE / "bin/python"


def install() -> None:
    """An environment of its own."""
    requirements = _SOURCE / "requirements.txt"
    pip = (_PYTHON, "-m", "pip", "install", "--quiet", "--require-hashes", "--requirement", requirements)
    install_once(_PLACE, [requirements], (sys.executable, "-m", "venv", "--clear", _PLACE), pip)


def play(cluster: Cluster) -> Rows:
    """The scenarios of `cpp/client.py`; the client writes its logs below the home directory."""
    environment = {**os.environ, "HOME": str(cluster.directory)}
    return play_program(cluster, "cpp", _PYTHON, _SOURCE / "client.py", environment=environment)


CPP = Outsider(
    "cpp",
    "librocketmq of PyPI's rocketmq 0.4.4",
    "C++ client: push, orderly, pull and broadcast consumers; sends of all kinds but transactions, which it has not",
    install,
    play,
)
