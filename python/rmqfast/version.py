"""The version: that of the workspace in Cargo.toml, which the extension was built with."""

from rmqfast._native import __version__

__all__ = ["__version__"]
