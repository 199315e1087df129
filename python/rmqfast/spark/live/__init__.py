"""A topic of a live cluster in Spark: its brokers are pulled by the executors."""
