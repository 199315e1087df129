"""Runs random histories, asks `explain` for each message and group, and prints what was wrong.

python -m tests.histories [--count 20] [--first 1] [--parallel 4] [--show]     exit code 1 if a verdict is false
python -m tests.histories --watch 0.25      without a ledger, and with samples of so many seconds, which may contradict
    --pause 2                               with so many seconds behind each step, as of people who restart members
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from rmqfast import EmbeddedCluster, Producer
from rmqfast.admin import Admin, Outcome
from tests.attack.figures import table

from .history import Cluster, Group, History, Sent
from .member import BROADCAST
from .truth import Truth

#: A broker whose failed messages come back soon, which filters by SQL92 and stores traces.
CONFIG = {"messageDelayLevel": " ".join(["1s"] * 18), "enablePropertyFilter": "true", "traceTopicEnable": "true"}


@dataclass
class Judgement:
    """Verdicts by kind of group and outcome, and the false ones in words; those by samples also by themselves."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    sampled: Counter[str] = field(default_factory=Counter)
    false: list[str] = field(default_factory=list)
    contradicted: list[str] = field(default_factory=list)
    misnamed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def add(self, other: Judgement) -> None:
        self.outcomes += other.outcomes
        self.reasons += other.reasons
        self.sampled += other.sampled
        self.false += other.false
        self.contradicted += other.contradicted
        self.misnamed += other.misnamed
        self.failed += other.failed


def judge(seed: int, shared: Cluster, *, is_shown: bool) -> Judgement:
    """Runs one history and judges each verdict about it."""
    judgement, history = Judgement(), History(seed, shared)
    try:
        with history.watched():
            history.run()
            for group in history.groups:
                for sent in history.sent:
                    _judge_message(history, group, sent, judgement, is_shown=is_shown)
    except Exception:  # noqa: BLE001 - a history that fails must not end the others; it is told at the end
        judgement.failed.append(f"history {seed}: {traceback.format_exc()}\n  " + "\n  ".join(history.steps))
    finally:
        history.stop()
    steps = f"  history {seed}: " + "; ".join(history.steps)
    if judgement.false or judgement.misnamed:
        judgement.false.append(steps)
    if judgement.contradicted:
        judgement.contradicted.append(steps)
    return judgement


def _judge_message(history: History, group: Group, sent: Sent, judgement: Judgement, *, is_shown: bool) -> None:
    admin, before = history.shared.admin, Truth.read(history.notes)
    told = admin.explain(admin.view_message(sent.offset_msg_id), group.name, history=history.samples)
    truths = before, Truth.read(history.notes)
    judgement.outcomes[group.kind, str(told.outcome)] += 1
    if told.sampled:
        judgement.sampled[str(told.outcome)] += 1
    text = f"history {history.seed}, {group.kind} {group.name}, message {sent.number}: {told.outcome} {told.sentences}"
    if is_shown:
        sys.stderr.write(f"{text}\n  {truths[1].of.get((group.name, sent.number))}\n")
    if told.outcome is Outcome.UNKNOWN:
        judgement.reasons[re.sub(r"[\d.:-]{3,}Z?|\S+@\S+|g\d+_\d+\S*|topic_\d+", "_", told.sentence)[:150]] += 1
    if all(truth.contradicts(group.name, sent.number, told, is_broadcast=group.kind == BROADCAST) for truth in truths):
        wrong = judgement.contradicted if told.sampled else judgement.false
        wrong.append(f"{text}\n  {truths[1].of.get((group.name, sent.number))}")
    name = told.member.split("@")[1] if told.member and told.outcome is Outcome.CONSUMED else None
    if name and all(truth.misnames(group.name, sent.number, name) for truth in truths):
        wrong = judgement.contradicted if told.sampled else judgement.misnamed
        wrong.append(f"wrong member: {text}\n  {truths[1].of.get((group.name, sent.number))}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.histories")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--no-ledger", action="store_true", help="as on brokers of RocketMQ")
    parser.add_argument("--watch", type=float, metavar="SECONDS", help="with samples every so many seconds, no ledger")
    parser.add_argument("--pause", type=float, default=0.0, metavar="SECONDS", help="seconds behind each step")
    words = parser.parse_args()
    whole = Judgement()
    config = CONFIG | {"pullLedgerEnable": str(not (words.no_ledger or words.watch)).lower()}
    with (
        tempfile.TemporaryDirectory() as directory,
        EmbeddedCluster(config=config) as cluster,
        Admin(name_server=cluster.name_server) as admin,
        Producer("histories", name_server=cluster.name_server) as producer,
        ThreadPoolExecutor(words.parallel) as pool,
    ):
        shared = Cluster(cluster, admin, producer, Path(directory), words.watch, words.pause)
        seeds = range(words.first, words.first + words.count)
        for judgement in pool.map(lambda seed: judge(seed, shared, is_shown=words.show), seeds):
            whole.add(judgement)
    sys.stdout.write(report(whole))
    return 1 if whole.false or whole.misnamed or whole.failed else 0


def report(whole: Judgement) -> str:
    """Returns the figures as tables, and the false verdicts."""
    kinds = sorted({kind for kind, _ in whole.outcomes})
    outcomes = sorted({outcome for _, outcome in whole.outcomes})
    rows = [("kind", *outcomes)]
    rows += [(kind, *(str(whole.outcomes[kind, outcome]) for outcome in outcomes)) for kind in kinds]
    rows.append(("all", *(str(sum(whole.outcomes[kind, outcome] for kind in kinds)) for outcome in outcomes)))
    false = [each for each in whole.false if not each.startswith("  ")]
    total = whole.outcomes.total()
    unknown = sum(count for (_, outcome), count in whole.outcomes.items() if outcome == Outcome.UNKNOWN)
    share = f"{unknown} unknown ({100 * unknown / max(1, total):.1f} %)"
    contradicted = [each for each in whole.contradicted if not each.startswith("  ")]
    lines = [f"{total} verdicts, {len(false)} false, {len(whole.misnamed)} name a wrong member, {share}"]
    lines += [f"{whole.sampled.total()} by samples, {len(contradicted)} contradicted: {dict(whole.sampled)}", ""]
    lines += ["unknown, because:", *(f"  {count:5} {text}" for text, count in whole.reasons.most_common(20)), ""]
    lines += [*whole.false, *whole.misnamed, *whole.contradicted, *whole.failed]
    return table(rows) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
