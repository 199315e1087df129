"""The version of the package. The extension has it compiled in, from Cargo.toml of the workspace."""

from rmqfast._native import __version__

__all__ = ["__version__"]
