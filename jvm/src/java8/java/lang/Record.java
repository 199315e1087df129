package java.lang;

/**
 * For the compiler alone: Spark 4 has records in its interfaces, and the class library of Java 8, against which this is compiled,
 * has no class for them. Nothing here uses one, and the jar does not hold this.
 */
public abstract class Record {}
