"""x."""


def demo() -> None:
    """X."""
