package org.rmqfast.spark;

import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column in memory that Rust owns.
 *
 * A number column has one array. A column of strings or bytes has an array of addresses and an array of lengths, with
 * -1 for null. A map column has an array with the start of each row's pairs, and the vectors of names and values.
 */
final class RustVector extends ColumnVector implements NativeVector {
    private final boolean isView;
    private final RustVector names;
    private final RustVector values;
    private long first;
    private long lengths;

    private RustVector(DataType type) {
        super(type);
        boolean isMap = type instanceof MapType;
        isView = type instanceof StringType || type instanceof BinaryType;
        if (!isMap && !isView && !(type instanceof IntegerType || type instanceof LongType || type instanceof TimestampType)) {
            throw new SourceException("ArgumentError: no vector of type " + type.catalogString());
        }
        names = isMap ? new RustVector(DataTypes.StringType) : null;
        values = isMap ? new RustVector(DataTypes.StringType) : null;
    }

    /** Returns the vectors of a schema. A struct is the column of decoded bodies. */
    static ColumnVector[] of(StructType schema) {
        StructField[] fields = schema.fields();
        ColumnVector[] vectors = new ColumnVector[fields.length];
        for (int i = 0; i < vectors.length; i++) {
            DataType type = fields[i].dataType();
            vectors[i] = type instanceof StructType ? new DecodedVector(type) : new RustVector(type);
        }
        return vectors;
    }

    @Override
    public int addresses() {
        return names != null ? 5 : isView ? 2 : 1;
    }

    @Override
    public int point(long[] addresses, int at) {
        first = addresses[at++];
        if (isView) {
            lengths = addresses[at++];
        } else if (names != null) {
            at = values.point(addresses, names.point(addresses, at));
        }
        return at;
    }

    @Override
    public boolean isNullAt(int row) {
        return isView && length(row) < 0;
    }

    @Override
    public boolean hasNull() {
        return isView;
    }

    @Override
    public int numNulls() {
        return 0;       // nulls are not counted; hasNull is true anyway
    }

    @Override
    public int getInt(int row) {
        return Platform.getInt(null, first + 4L * row);
    }

    @Override
    public long getLong(int row) {
        return Platform.getLong(null, first + 8L * row);
    }

    @Override
    public UTF8String getUTF8String(int row) {
        int length = length(row);
        return length < 0 ? null : UTF8String.fromAddress(null, getLong(row), length);
    }

    @Override
    public byte[] getBinary(int row) {
        int length = length(row);
        if (length < 0) {
            return null;
        }
        byte[] bytes = new byte[length];
        Platform.copyMemory(null, getLong(row), bytes, Platform.BYTE_ARRAY_OFFSET, length);
        return bytes;
    }

    @Override
    public ColumnarMap getMap(int row) {
        int start = getInt(row);
        return new ColumnarMap(names, values, start, getInt(row + 1) - start);
    }

    private int length(int row) {
        return Platform.getInt(null, lengths + 4L * row);
    }

    /** Does nothing, since the reader frees the memory. */
    @Override
    public void close() {}

    @Override
    public boolean getBoolean(int row) {
        throw unsupported();
    }

    @Override
    public byte getByte(int row) {
        throw unsupported();
    }

    @Override
    public short getShort(int row) {
        throw unsupported();
    }

    @Override
    public float getFloat(int row) {
        throw unsupported();
    }

    @Override
    public double getDouble(int row) {
        throw unsupported();
    }

    @Override
    public ColumnarArray getArray(int row) {
        throw unsupported();
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
        throw unsupported();
    }

    @Override
    public ColumnVector getChild(int ordinal) {
        throw unsupported();
    }

    private UnsupportedOperationException unsupported() {
        return new UnsupportedOperationException("a column of type " + type.catalogString() + " has no such value");
    }
}
