package org.rmqfast.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** The columns to send, with their index in the row and their type. */
final class TopicFields {
    private final int[] places;
    private final Field[] fields;

    TopicFields(StructType schema, int[] places) {
        this.places = places;
        fields = new Field[places.length];
        for (int i = 0; i < places.length; i++) {
            fields[i] = field(schema.fields()[places[i]].dataType());
        }
    }

    void write(InternalRow row, TopicRows rows) {
        for (int i = 0; i < places.length; i++) {
            if (row.isNullAt(places[i])) {
                rows.putNull();
            } else {
                fields[i].write(row, places[i], rows);
            }
        }
        rows.endRow();
    }

    /** Returns name and type of each column alternately, in the form that Rust reads. */
    static String[] texts(StructType schema) {
        String[] texts = new String[2 * schema.fields().length];
        for (int i = 0; i < schema.fields().length; i++) {
            texts[2 * i] = schema.fields()[i].name();
            texts[2 * i + 1] = schema.fields()[i].dataType().simpleString();
        }
        return texts;
    }

    private interface Field {
        void write(InternalRow row, int place, TopicRows rows);
    }

    private static Field field(DataType type) {
        switch (type.simpleString()) {
            case "binary":
                return (row, place, rows) -> rows.put(row.getBinary(place));
            case "string":
                return (row, place, rows) -> rows.put(row.getUTF8String(place));
            case "array<string>":
                return (row, place, rows) -> writeArray(row.getArray(place), rows);
            case "map<string,string>":
                return (row, place, rows) -> writeMap(row.getMap(place), rows);
            case "tinyint":
                return (row, place, rows) -> rows.put((long) row.getByte(place));
            case "smallint":
                return (row, place, rows) -> rows.put((long) row.getShort(place));
            case "int":
                return (row, place, rows) -> rows.put((long) row.getInt(place));
            default:
                // bigint: Rust has refused all other types
                return (row, place, rows) -> rows.put(row.getLong(place));
        }
    }

    private static void writeArray(ArrayData array, TopicRows rows) {
        rows.putCount(array.numElements());
        for (int i = 0; i < array.numElements(); i++) {
            rows.put(array.isNullAt(i) ? null : array.getUTF8String(i));
        }
    }

    private static void writeMap(MapData map, TopicRows rows) {
        ArrayData names = map.keyArray();
        ArrayData values = map.valueArray();
        rows.putCount(map.numElements());
        for (int i = 0; i < map.numElements(); i++) {
            rows.put(names.getUTF8String(i));
            rows.put(values.isNullAt(i) ? null : values.getUTF8String(i));
        }
    }
}
