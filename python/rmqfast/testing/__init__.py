"""pytest fixtures for tests of programs that use RocketMQ. They are available once rmqfast is installed."""
