"""Tables of `docs/benchmarks.md`, made of the records."""

from pages.page import filled as filled
from pages.page import typed_figures as typed_figures
from pages.page import with_figures as with_figures

__all__ = ["filled", "typed_figures", "with_figures"]
