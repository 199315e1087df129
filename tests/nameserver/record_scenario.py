"""Asks a real name server everything of the scenario anew: `python -m tests.nameserver.record_scenario`."""

from __future__ import annotations

import dataclasses
import gzip
import json
import tempfile
import time
from pathlib import Path

from tests.interop.rocketmq import free_ports
from tests.nameserver.scenario import RealNameServer, steps
from tests.nameserver.test_scenario import RECORDED, start_real


def main() -> None:
    """Takes the place of the recorded answers."""
    (port,), answers = free_ports(1), []
    with tempfile.TemporaryDirectory() as directory:
        running = start_real(Path(directory), port)
        try:
            real = RealNameServer(port)
            for step in steps():
                if step.code != -1:
                    answers.append(dataclasses.asdict(real.ask(step)))
                elif real.close(step.connection):
                    time.sleep(0.1)  # noqa: TID251 - no request of RocketMQ's tells whether it has seen the close
            real.close_all()
        finally:
            running.terminate()
            running.wait(30)
    lines = "".join(json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers)
    RECORDED.write_bytes(gzip.compress(lines.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
