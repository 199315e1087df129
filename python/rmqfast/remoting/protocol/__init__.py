"""Values that clients, brokers and name servers say to one another: a noun a file, with its encoding and decoding."""
