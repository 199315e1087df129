package java.lang;

/**
 * Exists for the compiler only, and is not in the jar.
 *
 * Spark 4 has records in its interfaces, but this code is compiled against the class library of Java 8, which lacks the
 * class Record.
 */
public abstract class Record {}
