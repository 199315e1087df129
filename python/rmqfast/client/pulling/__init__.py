"""Pulling, as all consumers do it: assigned queues, the choice of the broker, single pulls."""
