//! Growing arrays of a schema's types, to which decoders append the values of bodies.
use super::fields::{self, MAX_BODY_COST, VALUE_BYTES};
use super::leaf::{Leaf, Nulls, avro_leaf_of, leaf_of};
use crate::Error;
use arrow_array::{ArrayRef, GenericListArray, MapArray, OffsetSizeTrait, StructArray, UnionArray};
use arrow_buffer::{NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, FieldRef, Fields, UnionFields};
use std::fmt;
use std::sync::Arc;

/// Length of a value that an error quotes, in bytes.
const MAX_QUOTE: usize = 100;

/// Fails for the first type that values cannot have.
pub fn check_types(fields: &Fields) -> crate::Result<()> {
    fields.iter().try_for_each(|field| check_type(field.data_type()))
}

fn check_type(data_type: &DataType) -> crate::Result<()> {
    match data_type {
        DataType::Struct(fields) if fields.is_empty() => Err(Error::invalid("schema", "a field at least", data_type)),
        DataType::Struct(fields) => check_types(fields),
        DataType::List(item) | DataType::LargeList(item) => check_type(item.data_type()),
        DataType::Map(entries, false) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 && is_leaf(pair[0].data_type()) => check_types(pair),
            _ => refuse(data_type),
        },
        other if is_leaf(other) => Ok(()),
        other => refuse(other),
    }
}

fn is_leaf(data_type: &DataType) -> bool {
    leaf_of(data_type, data_type).is_some()
}

fn refuse(data_type: &DataType) -> crate::Result<()> {
    Err(Error::invalid("schema", "types that bodies can be decoded to", data_type))
}

/// The values of a field.
pub struct Values {
    field: FieldRef,
    pub kind: Kind,
    /// The values that a null takes, with those of the fields in it.
    width: usize,
}

pub enum Kind {
    Leaf(Box<dyn Leaf>),
    Struct(Structs),
    List(Lists),
    Map(Maps),
    Union(Unions),
}

impl Values {
    /// Returns no values yet. The type must be one of those that [`check_types`] takes, and fit what bodies have: that is the
    /// type `declared`, or one for the same values.
    pub fn of(field: &FieldRef, declared: &DataType) -> Self {
        let kind = match field.data_type() {
            DataType::Struct(fields) => Kind::Struct(Structs::of(fields, declared)),
            DataType::List(item) | DataType::LargeList(item) => Kind::List(Lists::of(item, declared)),
            DataType::Union(branches, _) => Kind::Union(Unions::of(branches)),
            DataType::Map(entries, _) => {
                Maps::of(entries, declared).map_or_else(|| Kind::Leaf(Box::<Nulls>::default()), Kind::Map)
            }
            other => Kind::Leaf(
                leaf_of(other, declared).or_else(|| avro_leaf_of(other)).unwrap_or_else(|| Box::<Nulls>::default()),
            ),
        };
        let width = match &kind {
            Kind::Struct(structs) => structs.width(),
            Kind::Union(unions) => 1 + unions.branches.first().map_or(0, |branch| branch.width),
            _ => fields::width(field.data_type()),
        };
        Self { field: field.clone(), kind, width }
    }

    pub fn name(&self) -> &str {
        self.field.name()
    }

    pub fn data_type(&self) -> &DataType {
        self.field.data_type()
    }

    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Leaf(leaf) => leaf.len(),
            Kind::Struct(structs) => structs.len(),
            Kind::List(lists) => lists.ends.len(),
            Kind::Map(maps) => maps.ends.len(),
            Kind::Union(unions) => unions.type_ids.len(),
        }
    }

    /// Appends a null, unless the schema forbids it.
    pub fn append_null(&mut self, budget: &mut Budget) -> Checked {
        if !self.field.is_nullable() {
            return Err(Fault::of("expected a value, got null"));
        }
        budget.take(self.width * VALUE_BYTES)?;
        self.append_hidden();
        Ok(())
    }

    /// Appends a null, or a value that nobody sees, since what holds it is null.
    fn append_hidden(&mut self) {
        match &mut self.kind {
            Kind::Leaf(leaf) => leaf.append_null(),
            Kind::Struct(structs) => structs.append_null(),
            Kind::List(lists) => lists.ends.append(lists.items.len(), false),
            Kind::Map(maps) => maps.ends.append(maps.keys.len(), false),
            Kind::Union(unions) => unions.begin(0).append_hidden(),
        }
    }

    pub fn truncate(&mut self, len: usize) {
        match &mut self.kind {
            Kind::Leaf(leaf) => leaf.truncate(len),
            Kind::Struct(structs) => structs.truncate(len),
            Kind::List(lists) => lists.items.truncate(lists.ends.truncate(len)),
            Kind::Map(maps) => {
                let pairs = maps.ends.truncate(len);
                maps.keys.truncate(pairs);
                maps.values.truncate(pairs);
            }
            Kind::Union(unions) => unions.truncate(len),
        }
    }

    /// Returns the values, and begins anew.
    pub fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        match (&mut self.kind, self.field.data_type()) {
            (Kind::Leaf(leaf), _) => leaf.finish(),
            (Kind::Struct(structs), DataType::Struct(fields)) => Ok(Arc::new(structs.finish(fields)?)),
            (Kind::List(lists), DataType::List(item)) => lists.finish::<i32>(item),
            (Kind::List(lists), DataType::LargeList(item)) => lists.finish::<i64>(item),
            (Kind::Map(maps), DataType::Map(entries, _)) => maps.finish(entries),
            (Kind::Union(unions), DataType::Union(branches, _)) => unions.finish(branches),
            (_, other) => Err(ArrowError::NotYetImplemented(other.to_string())),
        }
    }
}

/// The decoded bodies of a batch, a struct each. A bad body leaves nothing behind.
pub struct Rows {
    fields: Fields,
    structs: Structs,
}

impl Rows {
    /// Returns no rows yet. See [`Values::of`].
    pub fn of(fields: &Fields, declared: &DataType) -> Self {
        Self { fields: fields.clone(), structs: Structs::of(fields, declared) }
    }

    /// Appends the row that `read` appends. Returns the bytes of memory that its values take. The error is a reason for the user.
    pub(super) fn append(&mut self, read: impl FnOnce(&mut Structs, &mut Budget) -> Checked) -> Result<usize, String> {
        let (row, mut budget) = (self.structs.len(), Budget::new(MAX_BODY_COST));
        match read(&mut self.structs, &mut budget) {
            Ok(()) => Ok(budget.taken()),
            Err(fault) => {
                self.structs.truncate(row);
                Err(fault.to_string())
            }
        }
    }

    pub fn append_null(&mut self) {
        self.structs.append_null();
    }

    pub fn clear(&mut self) {
        self.structs.truncate(0);
    }

    /// Returns the rows, and begins anew. Fails only because of a bug in this crate.
    pub fn finish(&mut self) -> crate::Result<StructArray> {
        self.structs.finish(&self.fields).map_err(|error| Error::invalid("bodies", "values of the schema", error))
    }
}

/// The fields of structs.
pub struct Structs {
    pub fields: Vec<Values>,
    nulls: NullBufferBuilder,
}

impl Structs {
    /// Returns no structs yet. See [`Values::of`].
    pub fn of(fields: &Fields, declared: &DataType) -> Self {
        let declared_field = |name: &str| match declared {
            DataType::Struct(fields) => fields.find(name).map(|(_, field)| field.data_type()),
            _ => None,
        };
        let values = |field| Values::of(field, declared_field(field.name()).unwrap_or(field.data_type()));
        Self { fields: fields.iter().map(values).collect(), nulls: NullBufferBuilder::new(0) }
    }

    fn width(&self) -> usize {
        1 + self.fields.iter().map(|field| field.width).sum::<usize>()
    }

    pub fn len(&self) -> usize {
        self.nulls.len()
    }

    /// Returns the position of a field. `guess` is looked at first, since bodies mostly have their fields in one order.
    #[inline]
    pub fn find(&self, name: &str, guess: usize) -> Option<usize> {
        let is_guess = self.fields.get(guess).is_some_and(|field| field.name() == name);
        if is_guess { Some(guess) } else { self.fields.iter().position(|field| field.name() == name) }
    }

    /// Ends a struct whose fields were appended. Fields that were not are null.
    pub fn append(&mut self, budget: &mut Budget) -> Checked {
        budget.take(VALUE_BYTES)?;
        let row = self.len();
        for field in self.fields.iter_mut().filter(|field| field.len() == row) {
            field.append_null(budget).map_err(|fault| fault.within(field.name()))?;
        }
        self.nulls.append_non_null();
        Ok(())
    }

    pub fn append_null(&mut self) {
        self.fields.iter_mut().for_each(Values::append_hidden);
        self.nulls.append_null();
    }

    /// Keeps the first structs. The fields of one that was not ended go, too.
    pub fn truncate(&mut self, len: usize) {
        self.fields.iter_mut().for_each(|field| field.truncate(len));
        self.nulls.truncate(len);
    }

    pub fn finish(&mut self, fields: &Fields) -> Result<StructArray, ArrowError> {
        let len = self.len();
        let columns = self.fields.iter_mut().map(Values::finish).collect::<Result<_, _>>()?;
        StructArray::try_new_with_length(fields.clone(), columns, self.nulls.finish(), len)
    }
}

/// Lists, whose items stand one behind the other.
pub struct Lists {
    pub items: Box<Values>,
    ends: Ends,
}

impl Lists {
    fn of(item: &FieldRef, declared: &DataType) -> Self {
        let declared = match declared {
            DataType::List(item) | DataType::LargeList(item) => item.data_type(),
            _ => item.data_type(),
        };
        Self { items: Box::new(Values::of(item, declared)), ends: Ends::default() }
    }

    /// Ends a list whose items were appended.
    pub fn append(&mut self, budget: &mut Budget) -> Checked {
        budget.take(VALUE_BYTES)?;
        self.ends.append(self.items.len(), true);
        Ok(())
    }

    fn finish<O: OffsetSizeTrait>(&mut self, item: &FieldRef) -> Result<ArrayRef, ArrowError> {
        let (offsets, nulls) = self.ends.finish::<O>()?;
        Ok(Arc::new(GenericListArray::try_new(item.clone(), offsets, self.items.finish()?, nulls)?))
    }
}

/// Maps, whose pairs stand one behind the other.
pub struct Maps {
    pub keys: Box<Values>,
    pub values: Box<Values>,
    ends: Ends,
}

impl Maps {
    fn of(entries: &FieldRef, declared: &DataType) -> Option<Self> {
        let [key, value] = pair(entries)?;
        let [declared_key, declared_value] = match declared {
            DataType::Map(entries, _) => pair(entries)?,
            _ => [key, value],
        };
        let keys = Values::of(key, declared_key.data_type());
        let values = Values::of(value, declared_value.data_type());
        Some(Self { keys: keys.into(), values: values.into(), ends: Ends::default() })
    }

    /// Ends a map whose keys and values were appended.
    pub fn append(&mut self, budget: &mut Budget) -> Checked {
        budget.take(VALUE_BYTES)?;
        self.ends.append(self.keys.len(), true);
        Ok(())
    }

    fn finish(&mut self, entries: &FieldRef) -> Result<ArrayRef, ArrowError> {
        let DataType::Struct(pair) = entries.data_type() else {
            return Err(ArrowError::NotYetImplemented(entries.data_type().to_string()));
        };
        let (offsets, nulls) = self.ends.finish::<i32>()?;
        let pairs = StructArray::try_new(pair.clone(), vec![self.keys.finish()?, self.values.finish()?], None)?;
        Ok(Arc::new(MapArray::try_new(entries.clone(), offsets, pairs, nulls, false)?))
    }
}

fn pair(entries: &FieldRef) -> Option<[&FieldRef; 2]> {
    match entries.data_type() {
        DataType::Struct(pair) if pair.len() == 2 => Some([&pair[0], &pair[1]]),
        _ => None,
    }
}

/// Values of several types, each with the number of its branch.
pub struct Unions {
    branches: Vec<Values>,
    type_ids: Vec<i8>,
    /// The position of each value among those of its branch.
    positions: Vec<i32>,
}

impl Unions {
    fn of(branches: &UnionFields) -> Self {
        let branches = branches.iter().map(|(_, field)| Values::of(field, field.data_type())).collect();
        Self { branches, type_ids: Vec::new(), positions: Vec::new() }
    }

    /// Begins a value of a branch. It must be appended to the values that are returned.
    pub fn begin(&mut self, branch: usize) -> &mut Values {
        let values = &mut self.branches[branch];
        // A batch holds less than 2 GiB, and a schema has at most 127 branches.
        self.type_ids.push(branch as i8);
        self.positions.push(values.len() as i32);
        values
    }

    fn truncate(&mut self, len: usize) {
        while self.type_ids.len() > len {
            if let (Some(branch), Some(position)) = (self.type_ids.pop(), self.positions.pop()) {
                self.branches[branch as usize].truncate(position as usize);
            }
        }
    }

    fn finish(&mut self, branches: &UnionFields) -> Result<ArrayRef, ArrowError> {
        let children = self.branches.iter_mut().map(Values::finish).collect::<Result<_, _>>()?;
        let (type_ids, positions) = (std::mem::take(&mut self.type_ids), std::mem::take(&mut self.positions));
        Ok(Arc::new(UnionArray::try_new(branches.clone(), type_ids.into(), Some(positions.into()), children)?))
    }
}

/// The number of items at the end of each list or map.
struct Ends {
    ends: Vec<usize>,
    nulls: NullBufferBuilder,
}

impl Default for Ends {
    fn default() -> Self {
        Self { ends: Vec::new(), nulls: NullBufferBuilder::new(0) }
    }
}

impl Ends {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn append(&mut self, end: usize, is_valid: bool) {
        self.ends.push(end);
        self.nulls.append(is_valid);
    }

    /// Keeps the first ends. Returns the number of items before the last of them.
    fn truncate(&mut self, len: usize) -> usize {
        self.ends.truncate(len);
        self.nulls.truncate(len);
        self.ends.last().copied().unwrap_or(0)
    }

    fn finish<O: OffsetSizeTrait>(&mut self) -> Result<(OffsetBuffer<O>, Option<NullBuffer>), ArrowError> {
        let ends = std::mem::take(&mut self.ends);
        let items = ends.last().copied().unwrap_or(0);
        let offsets = std::iter::once(0).chain(ends).map(O::from_usize).collect::<Option<Vec<_>>>();
        let offsets = offsets.ok_or(ArrowError::OffsetOverflowError(items))?;
        Ok((OffsetBuffer::new(ScalarBuffer::from(offsets)), self.nulls.finish()))
    }
}

/// The bytes of memory that the values of a body may still take.
pub struct Budget {
    most: usize,
    left: usize,
}

impl Budget {
    pub fn new(most: usize) -> Self {
        Self { most, left: most }
    }

    /// Takes bytes before they are allocated.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Checked {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                Err(Fault::elsewhere(format!("expected values of at most {} bytes in memory, got more", self.most)))
            }
        }
    }

    pub fn taken(&self) -> usize {
        self.most - self.left
    }
}

pub type Checked<T = ()> = Result<T, Fault>;

/// The reason why a body is bad.
#[derive(Debug)]
pub struct Fault {
    /// The field whose value does not fit. `None` if the fault is in no field.
    path: Option<String>,
    text: String,
}

impl Fault {
    /// Returns the fault of a value.
    pub fn of(text: impl Into<String>) -> Self {
        Self { path: Some(String::new()), text: text.into() }
    }

    /// Returns a fault whose text names the place.
    pub fn elsewhere(text: impl Into<String>) -> Self {
        Self { path: None, text: text.into() }
    }

    /// Returns the fault of a value that has another type.
    pub fn misfit(expected: &DataType, got: &str) -> Self {
        let end = (0..=MAX_QUOTE.min(got.len())).rev().find(|at| got.is_char_boundary(*at)).unwrap_or(0);
        let more = if end < got.len() { "…" } else { "" };
        Self::of(format!("expected {expected}, got {}{more}", &got[..end]))
    }

    /// Returns the fault with the name of the field around it.
    #[must_use]
    pub fn within(self, name: &str) -> Self {
        let path = self.path.map(|path| if path.is_empty() { name.to_owned() } else { format!("{name}.{path}") });
        Self { path, ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) if !path.is_empty() => write!(f, "{path}: {}", self.text),
            _ => f.write_str(&self.text),
        }
    }
}
