"""The database of a broker's metadata, `config/metadata.db`: whether it has what was written to it."""
