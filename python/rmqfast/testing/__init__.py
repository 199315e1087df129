"""For tests of programs that use RocketMQ: fixtures of pytest, which finds them by itself once rmqfast is installed."""
