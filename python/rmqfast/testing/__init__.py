"""pytest fixtures for tests of programs that use RocketMQ; pytest finds them once rmqfast is installed."""
