"""Bodies that clients, brokers and name servers exchange; one file per kind of body."""
