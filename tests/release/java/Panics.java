package org.rmqfast.spark;

/** Whether a panic of the library becomes an exception: it says what it got. In the package, as nobody else may ask. */
public final class Panics {
    private Panics() {}

    public static void main(String[] arguments) {
        try {
            Native.panic("on request");
        } catch (SourceException e) {
            System.out.println("SourceException: " + e.getMessage());
        }
    }
}
