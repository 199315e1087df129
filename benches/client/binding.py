"""librocketmq's Python binding in one warm process: sends only; run as a program, it is the peer's child."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent))  # behind the installed packages: one of ours has the binding's name

from peer import Answer, Missing, serve, timed


class Sender:
    """One producer; its methods answer requests."""

    def __init__(self) -> None:
        self._producer: Any = None
        self._module: Any = None

    def connect(self, name_server: str) -> Answer:
        """Loads the binding and starts a producer."""
        try:
            self._module = importlib.import_module("rocketmq.client")
        except (ImportError, OSError) as error:
            raise Missing(f"librocketmq's Python binding cannot be loaded: {error}") from None
        self._producer = self._module.Producer("bench_binding")
        self._producer.set_namesrv_addr(name_server)
        self._producer.start()
        return {"rows": 0, "seconds": 0}

    def sync(self, topic: str, size: str, count: str, threads: str) -> Answer:
        """Threads that wait for each of their messages."""
        share, body = int(count) // int(threads), "x" * int(size)  # its bodies are texts

        def run() -> None:
            for number in range(share):
                self._producer.send_sync(self._message(topic, body, number))

        def work() -> Answer:
            running = [threading.Thread(target=run) for _ in range(int(threads))]
            for thread in running:
                thread.start()
            for thread in running:
                thread.join()
            return {"rows": share * int(threads)}

        return timed(work)

    def _message(self, topic: str, body: str, number: int) -> Any:
        message = self._module.Message(topic)
        message.set_tags(f"t{number % 100}")
        message.set_body(body)
        return message


if __name__ == "__main__":
    sender = Sender()
    serve({"connect": sender.connect, "sync": sender.sync})
