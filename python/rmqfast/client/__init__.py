"""Clients of a RocketMQ cluster: producers, consumers, and the client instance that they share."""
