"""Topics of a live cluster in Spark. The executors pull messages from the brokers."""
