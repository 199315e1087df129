"""Bodies that clients, brokers and name servers exchange; each file encodes and decodes one noun."""
