package org.rmqfast.spark;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Decoded bodies, or a field of them, in the layout of Arrow. {@code rust/jvm/src/vectors/values.rs} lists the addresses of
 * each type.
 */
final class DecodedVector extends ColumnVector implements NativeVector {
    private static final int DECIMAL_BYTES = 16;

    private final DecodedVector[] children;
    private final boolean hasBytes;
    /** A bit for each row, which is 1 for a value. 0 if no row is null. */
    private long nulls;
    /** Numbers, bits, or the starts of texts, bytes, arrays and maps. */
    private long values;
    private long bytes;

    DecodedVector(DataType type) {
        super(type);
        children = children(type);
        hasBytes = type instanceof StringType || type instanceof BinaryType;
    }

    private static DecodedVector[] children(DataType type) {
        if (type instanceof ArrayType) {
            return new DecodedVector[] {new DecodedVector(((ArrayType) type).elementType())};
        } else if (type instanceof MapType) {
            MapType map = (MapType) type;
            return new DecodedVector[] {new DecodedVector(map.keyType()), new DecodedVector(map.valueType())};
        } else if (type instanceof StructType) {
            StructField[] fields = ((StructType) type).fields();
            DecodedVector[] children = new DecodedVector[fields.length];
            for (int i = 0; i < children.length; i++) {
                children[i] = new DecodedVector(fields[i].dataType());
            }
            return children;
        }
        return new DecodedVector[0];
    }

    @Override
    public int addresses() {
        int count = type instanceof StructType ? 1 : hasBytes ? 3 : 2;
        for (DecodedVector child : children) {
            count += child.addresses();
        }
        return count;
    }

    @Override
    public int point(long[] addresses, int at) {
        nulls = addresses[at++];
        if (!(type instanceof StructType)) {
            values = addresses[at++];
        }
        if (hasBytes) {
            bytes = addresses[at++];
        }
        for (DecodedVector child : children) {
            at = child.point(addresses, at);
        }
        return at;
    }

    @Override
    public boolean isNullAt(int row) {
        return nulls != 0 && !bit(nulls, row);
    }

    @Override
    public boolean hasNull() {
        return nulls != 0;
    }

    @Override
    public int numNulls() {
        return 0;       // nulls are not counted; hasNull says whether there are any
    }

    @Override
    public boolean getBoolean(int row) {
        return bit(values, row);
    }

    @Override
    public byte getByte(int row) {
        return Platform.getByte(null, values + row);
    }

    @Override
    public short getShort(int row) {
        return Platform.getShort(null, values + 2L * row);
    }

    @Override
    public int getInt(int row) {
        return Platform.getInt(null, values + 4L * row);
    }

    @Override
    public long getLong(int row) {
        return Platform.getLong(null, values + 8L * row);
    }

    @Override
    public float getFloat(int row) {
        return Platform.getFloat(null, values + 4L * row);
    }

    @Override
    public double getDouble(int row) {
        return Platform.getDouble(null, values + 8L * row);
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
        if (isNullAt(row)) {
            return null;
        }
        long address = values + (long) DECIMAL_BYTES * row;
        if (precision <= Decimal.MAX_LONG_DIGITS()) {
            return Decimal.createUnsafe(Platform.getLong(null, address), precision, scale);
        }
        byte[] digits = new byte[DECIMAL_BYTES];
        for (int i = 0; i < DECIMAL_BYTES; i++) {
            // Java has the highest byte first
            digits[DECIMAL_BYTES - 1 - i] = Platform.getByte(null, address + i);
        }
        return Decimal.apply(new BigDecimal(new BigInteger(digits), scale), precision, scale);
    }

    @Override
    public UTF8String getUTF8String(int row) {
        int start = getInt(row);
        return isNullAt(row) ? null : UTF8String.fromAddress(null, bytes + start, getInt(row + 1) - start);
    }

    @Override
    public byte[] getBinary(int row) {
        if (isNullAt(row)) {
            return null;
        }
        int start = getInt(row);
        byte[] copy = new byte[getInt(row + 1) - start];
        Platform.copyMemory(null, bytes + start, copy, Platform.BYTE_ARRAY_OFFSET, copy.length);
        return copy;
    }

    @Override
    public ColumnarArray getArray(int row) {
        if (isNullAt(row)) {
            return null;
        }
        int start = getInt(row);
        return new ColumnarArray(children[0], start, getInt(row + 1) - start);
    }

    @Override
    public ColumnarMap getMap(int row) {
        if (isNullAt(row)) {
            return null;
        }
        int start = getInt(row);
        return new ColumnarMap(children[0], children[1], start, getInt(row + 1) - start);
    }

    @Override
    public ColumnVector getChild(int ordinal) {
        return children[ordinal];
    }

    /** Does nothing, since the reader frees the memory. */
    @Override
    public void close() {}

    private static boolean bit(long bits, int row) {
        return (Platform.getByte(null, bits + (row >> 3)) >> (row & 7) & 1) != 0;
    }
}
