"""Clients and suites that others wrote, each with an adapter; `tests/interop/compatibility.py` runs them."""

from .cpp import CPP
from .go import GO
from .java import JAVA, MQADMIN, TWO_BROKERS
from .node import NODE
from .outsider import NotInstallableError, Outsider, Rows

#: All of them, in the order of the table.
OUTSIDERS = (*JAVA, *TWO_BROKERS, CPP, GO, NODE, MQADMIN)

__all__ = ["CPP", "GO", "NODE", "OUTSIDERS", "NotInstallableError", "Outsider", "Rows"]
