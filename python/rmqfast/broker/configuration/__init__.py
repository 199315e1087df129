"""`broker.conf`: its keys, its values, what they mean for the store and the data plane."""
