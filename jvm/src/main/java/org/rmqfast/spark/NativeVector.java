package org.rmqfast.spark;

/** A vector whose arrays belong to Rust, which tells their addresses for each batch. */
interface NativeVector {
    /** Returns the number of its addresses. */
    int addresses();

    /** Sets its addresses from {@code addresses}, beginning at {@code at}. Returns the index behind them. */
    int point(long[] addresses, int at);
}
