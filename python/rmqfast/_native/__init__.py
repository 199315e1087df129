"""The extension's one door: `rmqfast.store` and `rmqfast.message` alone come in."""

from rmqfast._native._rmqfast import COLUMNS, Appender, Scan, Store, Tail, load_config, plan_clean, repair, save_config

__all__ = ["COLUMNS", "Appender", "Scan", "Store", "Tail", "load_config", "plan_clean", "repair", "save_config"]
