package org.rmqfast.spark;

import org.apache.spark.sql.connector.read.InputPartition;

/** A task's share of a read, as Rust planned it; what the bytes mean only Rust knows. */
final class Piece implements InputPartition {
    private static final long serialVersionUID = 2;

    final byte[] bytes;
    /** Whether the next batch's piece of the same queues is to run in the same executor. */
    final boolean comesBack;
    private final String[] hosts;

    private Piece(byte[] bytes, boolean comesBack, String[] hosts) {
        this.bytes = bytes;
        this.comesBack = comesBack;
        this.hosts = hosts;
    }

    static Piece[] of(byte[][] all) {
        Piece[] pieces = new Piece[all.length];
        for (int i = 0; i < pieces.length; i++) {
            pieces[i] = new Piece(all[i], false, new String[0]);
        }
        return pieces;
    }

    /** Pieces of a batch of a stream, each at the executor where it was in the batch before. */
    static Piece[] ofStream(byte[][] all) {
        String[] hosts = Executors.hosts();
        Piece[] pieces = new Piece[all.length];
        for (int i = 0; i < pieces.length; i++) {
            long number = hosts.length == 0 ? -1 : Native.pieceNumber(all[i]);
            boolean comesBack = number >= 0;
            // where there is one host, there is nothing to prefer
            boolean chooses = comesBack && hosts.length > 1;
            String[] host = chooses ? new String[] {hosts[(int) (number % hosts.length)]} : new String[0];
            pieces[i] = new Piece(all[i], comesBack, host);
        }
        return pieces;
    }

    @Override
    public String[] preferredLocations() {
        return hosts;
    }
}
