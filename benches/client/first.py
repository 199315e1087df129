"""The first minutes with a client: a consumer that is there before its topic is, and one that starts."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

import broker.group
from broker.sides import Rmqfast, RocketMQ
from client.group import Asker, asker, entered, rmqfast_process
from groups import Plan
from measurement import Series, Variants, interleave, unmeasured
from peer import Missing

#: Row, its request.
ROWS = (("message", "first"), ("lite start", "start"))


def first(plan: Plan) -> list[Series]:
    """Each client on each broker, in turns; a run makes a topic and a group of its own."""
    variants: Variants = {}
    missing: list[Series] = []
    with ExitStack() as stack:
        for client in askers(stack):
            for row, request in ROWS:
                name = f"first {client.name} {row}"
                if client.ask is None:
                    missing.append(unmeasured(name, client.missing or Missing("not there")))
                else:
                    variants[name] = partial(client.ask, request)
        return interleave(variants, plan.effort, []) + missing


def askers(stack: ExitStack) -> list[Asker]:
    """Both clients on both brokers."""
    found = []
    for kind in (RocketMQ, Rmqfast):
        side = entered(stack, kind)
        for name in ("Java", "rmqfast"):
            label = f"{name} on {kind.name}"
            if isinstance(side, Exception):
                found.append(Asker(label, None, side))
            elif name == "Java":
                found.append(asker(stack, side, label, partial(broker.group.clients, side)))
            else:
                found.append(asker(stack, side, label, rmqfast_process))
    return found
