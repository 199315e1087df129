"""Clients of a RocketMQ cluster: what produces, what consumes, and what they share."""
