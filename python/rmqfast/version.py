"""The version of the package: that of the workspace in Cargo.toml, compiled into the extension."""

from rmqfast._native import __version__

__all__ = ["__version__"]
