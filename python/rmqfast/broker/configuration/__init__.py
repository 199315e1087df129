"""`broker.conf`: its keys and values, and their meaning for the store and the data plane."""
