"""The table of what is harmed."""

from __future__ import annotations

from collections.abc import Callable

from .answers import BrokerAnswers
from .attempt import Subject
from .checkpoints import CheckpointSubject
from .metadata import MetadataSubject
from .replication import Replication
from .stores import Stores

#: What makes each subject, by its name.
SUBJECTS: dict[str, Callable[[], Subject]] = {
    "answers": BrokerAnswers,
    "checkpoints": CheckpointSubject,
    "metadata": MetadataSubject,
    "replication": Replication,
    "stores": Stores,
}
