"""pytest fixtures for tests of programs that use RocketMQ; available after installing rmqfast."""
