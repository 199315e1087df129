"""x."""


def ingest() -> None:
    """X."""
