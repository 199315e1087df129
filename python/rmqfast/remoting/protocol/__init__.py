"""Bodies that clients, brokers and name servers exchange. Each file has one kind of body."""
