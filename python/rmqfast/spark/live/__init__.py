"""Topics of a live cluster in Spark, pulled from their brokers by the executors."""
