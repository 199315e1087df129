"""The Node client `ali-ons`, which speaks the remoting protocol."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.broker.interop.cluster import Cluster

from .outsider import TARGET, Outsider, Rows, install_once, play_program

_SOURCE = Path(__file__).parents[1] / "node"
_PLACE = TARGET / "node"


def install() -> None:
    """The packages of the lock file; nothing of theirs is run at installation."""
    described = [_SOURCE / "package.json", _SOURCE / "package-lock.json"]
    _PLACE.mkdir(parents=True, exist_ok=True)
    for file in described:
        shutil.copy(file, _PLACE)
    install_once(_PLACE, described, ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"), cwd=_PLACE)


def play(cluster: Cluster) -> Rows:
    """The scenarios of `node/client.js`."""
    environment = {**os.environ, "NODE_PATH": str(_PLACE / "node_modules")}
    return play_program(cluster, "node", "node", _SOURCE / "client.js", environment=environment)


NODE = Outsider(
    "node",
    "ali-ons 3.12.0",
    "Node client: push consumers with tags, SQL92 and retries; sends with delays, compression, odd characters",
    install,
    play,
)
