"""Pulling, shared by all consumers: assigned queues, the choice of the broker, single pulls."""
