"""Clients and a broker under faults, and whether their history is one that they promise: `make jepsen`."""
