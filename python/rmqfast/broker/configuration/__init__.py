"""`broker.conf`: its keys and values, and how they configure the store and the data plane."""
