package org.rmqfast.spark;

import org.apache.spark.sql.connector.read.InputPartition;

/** A task's share of a read, as Rust planned it; what the bytes mean only Rust knows. */
final class Piece implements InputPartition {
    private static final long serialVersionUID = 1;

    final byte[] bytes;

    Piece(byte[] bytes) {
        this.bytes = bytes;
    }

    static Piece[] of(byte[][] all) {
        Piece[] pieces = new Piece[all.length];
        for (int i = 0; i < pieces.length; i++) {
            pieces[i] = new Piece(all[i]);
        }
        return pieces;
    }
}
