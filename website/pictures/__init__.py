"""Pictures of queue offsets for `docs/examples.md`, drawn from the output that the page shows: `python -m website`."""
