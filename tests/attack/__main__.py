"""Runs the attacks on this broker, and with `--real` those that make sense on RocketMQ 4.9.4; prints one table.

python -m tests.attack [--short] [--real] [NAME ...]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.attack.attacks import ATTACKS, Attack
from tests.attack.figures import FULL, SHORT, Figure, Scale, rows_of, table
from tests.broker.interop.cluster import OurCluster, RealCluster

_HEAD = ("attack", "figure", "value", "goal", "")


def main() -> int:
    """Runs them; 1 if a goal is not met by this broker."""
    words = sys.argv[1:]
    scale = SHORT if "--short" in words else FULL
    names = [word for word in words if not word.startswith("--")]
    chosen = [attack for attack in ATTACKS if not names or attack.name in names]
    rows: list[tuple[str, ...]] = [_HEAD]
    is_met = True
    for attack in chosen:
        figures = run(attack, scale, real=False)
        is_met &= all(figure.is_met for figure in figures)
        rows += rows_of(attack.name, figures)
        if "--real" in words and attack.is_for_real:
            rows += rows_of(f"{attack.name}, RocketMQ 4.9.4", run(attack, scale, real=True))
        sys.stderr.write(f"{attack.name}: done\n")
    sys.stdout.write(table(rows))
    return 0 if is_met else 1


def run(attack: Attack, scale: Scale, *, real: bool) -> list[Figure]:
    """An attack on a cluster of its own, in a directory that is thrown away."""
    kind = "4.9.4" if real else "ours"
    with tempfile.TemporaryDirectory(prefix=f"attack-{kind}-") as directory:
        place = Path(directory) / "mq"
        cluster = RealCluster(kind, place, attack.properties) if real else OurCluster(place, attack.properties)
        attack.prepare(place)
        with cluster:
            return attack.run(cluster, scale)


if __name__ == "__main__":
    sys.exit(main())
