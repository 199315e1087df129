"""Looks for silent losses: data is harmed at random, and each reader returns true rows and reports what is missing.

- `attempt`: the result of one seed of a subject, and the oracle; `harms`: damage to files and JSON;
- `stores`, `metadata`, `checkpoints`, `replication`, `answers`: the subjects;
- `__main__`: runs subjects for a time or by seed, and prints one table.
"""
