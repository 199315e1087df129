package org.rmqfast.spark;

import org.apache.spark.sql.connector.read.InputPartition;

/** A piece of the commit log, as Rust planned it. */
final class StorePartition implements InputPartition {
    private static final long serialVersionUID = 1;

    final long[] numbers;

    StorePartition(long[] numbers) {
        this.numbers = numbers;
    }
}
