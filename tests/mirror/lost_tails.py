"""A master that loses the end of its log and goes on with other messages, again and again, beside a mirror.

python -m tests.mirror.lost_tails ROUNDS [SEED [VERSION]]
"""

from __future__ import annotations

import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rmqfast import Mirror, MirrorOptions, MirrorStatus, open_store
from tests.interop.rocketmq import RocketMQ
from tests.mirror.copies import SMALL, assert_same, caught_up, lose_tail, send
from tests.waiting import until

TOPIC = "orders"


@dataclass
class Outcome:
    """What became of the tails.

    Attributes:
        lost: Tails that the master lost.
        found: Those that the mirror withdrew, each with as many bytes as were lost.
        is_same: Whether the copy had the master's messages after each, and no others.
    """

    lost: int = 0
    found: int = 0
    is_same: bool = True


def lost_tails(rounds: int, directory: Path, seed: int = 1, version: str = "4.9.4") -> Outcome:
    """Has the master lose its tail so often."""
    chance, outcome = random.Random(seed), Outcome()
    options = MirrorOptions(if_broken="withdraw")
    with RocketMQ(version, directory / "mq", *SMALL, clean=False) as master:
        master.create_topic(TOPIC, 4)
        with Mirror(directory / "copies", name_server=master.name_server, options=options) as mirror:
            for number in range(rounds):
                # more than what is compared at first, at times
                tail = chance.choice([1, 2, 12, 300])
                send(master.name_server, TOPIC, bodies(chance, f"{number} old", tail + chance.randint(20, 200)))
                position, withdrawn = caught_up(mirror, master.store).position, mirror.status()[0].withdrawn_bytes
                master.kill9()
                lost = position - lose_tail(master.store, tail)
                master.start()
                outcome.lost += 1
                # some end before the place of the old end, most behind it
                send(master.name_server, TOPIC, bodies(chance, f"{number} new", chance.randint(1, 60)))
                status = withdrawn_again(mirror, withdrawn, master)
                outcome.found += status.withdrawn_bytes - withdrawn == lost
                assert_same(master.store, status.directory, queues=False)
                outcome.is_same &= messages(master.store) == messages(status.directory)
                sys.stderr.write(f"{outcome}\n")
    return outcome


def withdrawn_again(mirror: Mirror, before: int, master: RocketMQ) -> MirrorStatus:
    """Waits until more was withdrawn, and all that is there now is copied."""
    until(lambda: mirror.status()[0].withdrawn_bytes > before, lambda: str(mirror.status()))
    return caught_up(mirror, master.store)


def bodies(chance: random.Random, prefix: str, count: int) -> list[bytes]:
    """So many, most of any length, some of one, and a large one: what they begin with may be where it was before."""
    lengths = [chance.choice([chance.randint(20, 900), 500]) for _ in range(count - 1)] + [chance.choice([300, 90_000])]
    return [f"{prefix} {number} ".encode().ljust(length, b"x") for number, length in enumerate(lengths)]


def messages(store: Path) -> list[bytes]:
    with open_store(store) as opened:
        return sorted(opened.scan(TOPIC).to_arrow()["body"].to_pylist())


def main() -> None:
    given = sys.argv[1:]
    rounds, seed, version = (*given, *("9", "1", "4.9.4")[len(given) :])
    with tempfile.TemporaryDirectory() as directory:
        outcome = lost_tails(int(rounds), Path(directory), int(seed), version)
    sys.stdout.write(f"{outcome}\n")
    sys.exit(0 if outcome.found == outcome.lost and outcome.is_same else 1)


if __name__ == "__main__":
    main()
