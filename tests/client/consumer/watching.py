"""A hook that remembers what it is told, and then fails."""

from __future__ import annotations

from rmqfast.client.consumer import ConsumeContext


class Watcher:
    """What was told, in order: when, the status, whether it was a success, its kind, the error, the bodies."""

    name = "watcher"

    def __init__(self) -> None:
        self.seen: list[tuple[str, str | None, bool, str | None, type[BaseException] | None, list[bytes]]] = []
        self.contexts: list[ConsumeContext] = []

    def before(self, context: ConsumeContext) -> None:
        context.notes["by"] = self
        self._note("before", context)

    def after(self, context: ConsumeContext) -> None:
        assert context.notes["by"] is self
        self.contexts.append(context)
        self._note("after", context)

    def _note(self, when: str, context: ConsumeContext) -> None:
        error = None if context.error is None else type(context.error)
        bodies = [message.body or b"" for message in context.messages]
        kind = context.props.get("ConsumeContextType")
        self.seen.append((when, context.status, context.is_success, kind, error, bodies))
        raise ValueError
