"""Looks for silent losses: data is harmed at random, and each reader returns true rows and tells what is missing.

- `attempt`: what one seed of a subject came to, and the oracle;
- `subjects`: the table of what is harmed (`stores`, `metadata`, ...), each in its own module;
- `__main__`: runs subjects for a time or by seed, and prints one table.
"""
