//! Turns a decoder's arrays into those of the schema: fewer fields, and time zones by their usual name.
use super::ddl::UTC;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowTimestampType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, GenericListArray, MapArray, OffsetSizeTrait, StructArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, TimeUnit};
use std::sync::Arc;

/// Zone of a decoder's timestamps. The decoders only know zones by their offset.
const OFFSET_OF_UTC: &str = "+00:00";

/// Returns the fields with each zone `from` replaced.
pub fn with_zones(fields: &Fields, from: Zone) -> Fields {
    fields.iter().map(|field| with_zone(field, from)).collect()
}

/// The two names of UTC.
#[derive(Clone, Copy)]
pub enum Zone {
    Usual,
    Offset,
}

impl Zone {
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Usual => (UTC, OFFSET_OF_UTC),
            Self::Offset => (OFFSET_OF_UTC, UTC),
        }
    }
}

fn with_zone(field: &FieldRef, from: Zone) -> FieldRef {
    let (old, new) = from.names();
    let data_type = match field.data_type() {
        DataType::Timestamp(unit, Some(zone)) if **zone == *old => DataType::Timestamp(*unit, Some(new.into())),
        DataType::Struct(fields) => DataType::Struct(with_zones(fields, from)),
        DataType::List(item) => DataType::List(with_zone(item, from)),
        DataType::LargeList(item) => DataType::LargeList(with_zone(item, from)),
        DataType::Map(entries, is_sorted) => DataType::Map(with_zone(entries, from), *is_sorted),
        _ => return field.clone(),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}

/// Returns a struct with only `fields`, in their order.
pub fn fit_struct(values: &StructArray, fields: &Fields) -> Result<StructArray, ArrowError> {
    let columns = fields.iter().map(|field| match values.column_by_name(field.name()) {
        Some(column) => fit(column, field.data_type()),
        None => Err(ArrowError::SchemaError(format!("expected a field {}, got none", field.name()))),
    });
    StructArray::try_new(fields.clone(), columns.collect::<Result<_, _>>()?, values.nulls().cloned())
}

fn fit(values: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    Ok(match data_type {
        _ if values.data_type() == data_type => values.clone(),
        DataType::Struct(fields) => Arc::new(fit_struct(values.as_struct(), fields)?),
        DataType::List(item) => fit_list::<i32>(values, item)?,
        DataType::LargeList(item) => fit_list::<i64>(values, item)?,
        DataType::Map(entries, is_sorted) => {
            let (map, DataType::Struct(pair)) = (values.as_map(), entries.data_type()) else {
                return misfit(values, data_type);
            };
            let pairs = fit_struct(map.entries(), pair)?;
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            Arc::new(MapArray::try_new(entries.clone(), offsets, pairs, nulls, *is_sorted)?)
        }
        DataType::Timestamp(TimeUnit::Second, _) => fit_times::<TimestampSecondType>(values, data_type)?,
        DataType::Timestamp(TimeUnit::Millisecond, _) => fit_times::<TimestampMillisecondType>(values, data_type)?,
        DataType::Timestamp(TimeUnit::Microsecond, _) => fit_times::<TimestampMicrosecondType>(values, data_type)?,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => fit_times::<TimestampNanosecondType>(values, data_type)?,
        _ => return misfit(values, data_type),
    })
}

fn fit_list<O: OffsetSizeTrait>(values: &ArrayRef, item: &FieldRef) -> Result<ArrayRef, ArrowError> {
    let list = values.as_list::<O>();
    let items = fit(list.values(), item.data_type())?;
    let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
    Ok(Arc::new(GenericListArray::try_new(item.clone(), offsets, items, nulls)?))
}

fn fit_times<T: ArrowTimestampType>(values: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    match values.as_primitive_opt::<T>() {
        Some(times) => Ok(Arc::new(times.clone().with_data_type(data_type.clone()))),
        None => misfit(values, data_type),
    }
}

fn misfit<T>(values: &ArrayRef, data_type: &DataType) -> Result<T, ArrowError> {
    Err(ArrowError::SchemaError(format!("expected {data_type}, got {}", values.data_type())))
}
