package org.rmqfast.spark;

import org.apache.spark.sql.connector.read.InputPartition;

/** A task's share of a read, planned and serialized by Rust. */
final class Piece implements InputPartition {
    private static final long serialVersionUID = 2;

    final byte[] bytes;
    /** Whether the next batch reads the same queues and should run in the same executor. */
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
            pieces[i] = new Piece(all[i], false, Native.pieceHosts(all[i]));
        }
        return pieces;
    }

    /** Creates the pieces of a stream's batch. Pieces of the same queues prefer the same executor in each batch. */
    static Piece[] ofStream(byte[][] all) {
        String[] hosts = Executors.hosts();
        Piece[] pieces = new Piece[all.length];
        for (int i = 0; i < pieces.length; i++) {
            long number = hosts.length == 0 ? -1 : Native.pieceNumber(all[i]);
            boolean comesBack = number >= 0;
            // with a single host there is no choice
            boolean chooses = comesBack && hosts.length > 1;
            String[] host =
                    chooses ? new String[] {hosts[(int) (number % hosts.length)]} : Native.pieceHosts(all[i]);
            pieces[i] = new Piece(all[i], comesBack, host);
        }
        return pieces;
    }

    @Override
    public String[] preferredLocations() {
        return hosts;
    }
}
