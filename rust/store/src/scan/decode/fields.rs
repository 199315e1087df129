//! The fields of a decoded body: their limits, and the choice of some of them by dotted names.
use crate::{Error, Result};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use std::collections::HashSet;
use std::sync::Arc;

/// Approximate bytes of memory of a value, beside the bytes of its text.
pub const VALUE_BYTES: usize = 32;
/// Maximum bytes of memory for the values of one body. A body with more is bad.
pub const MAX_BODY_COST: usize = 256 << 20;
/// Maximum depth of nested types.
pub const MAX_DEPTH: usize = 32;
/// Maximum number of fields, nested ones included.
const MAX_FIELDS: usize = 4096;

/// Checks the types of a schema and its size.
pub fn check(fields: &Fields) -> Result<()> {
    if fields.is_empty() {
        return Err(Error::invalid("schema", "a field at least", "none"));
    }
    let mut count = 0;
    check_names(fields)?;
    fields.iter().try_for_each(|field| check_field(field, 0, &mut count))
}

fn check_names(fields: &Fields) -> Result<()> {
    let mut names = HashSet::new();
    match fields.iter().find(|field| !names.insert(field.name())) {
        Some(field) => Err(Error::invalid("schema", "each field once", format!("{} twice", field.name()))),
        None => Ok(()),
    }
}

fn check_field(field: &Field, depth: usize, count: &mut usize) -> Result<()> {
    *count += 1;
    if depth >= MAX_DEPTH || *count > MAX_FIELDS {
        let expected = format!("at most {MAX_DEPTH} levels and {MAX_FIELDS} fields");
        return Err(Error::invalid("schema", expected, format!("more at {}", field.name())));
    }
    if let DataType::Struct(fields) = field.data_type() {
        check_names(fields)?;
    }
    children(field.data_type()).iter().try_for_each(|child| check_field(child, depth + 1, count))
}

fn children(data_type: &DataType) -> &[FieldRef] {
    match data_type {
        DataType::Struct(fields) => fields,
        DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => std::slice::from_ref(item),
        _ => &[],
    }
}

/// The numbers of leaves that a row and an item of a list or map have, which bound the memory of a decoded body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leaves {
    pub of_row: usize,
    pub of_item: usize,
    pub has_maps: bool,
}

impl Leaves {
    pub fn of(fields: &Fields) -> Self {
        let mut leaves = Self::default();
        leaves.of_row = fields.iter().map(|field| leaves.count(field.data_type())).sum();
        leaves
    }

    /// Returns the leaves of a type outside of lists and maps. Notes those of its items.
    fn count(&mut self, data_type: &DataType) -> usize {
        if let DataType::Union(branches, _) = data_type {
            return branches.iter().map(|(_, branch)| self.count(branch.data_type())).sum::<usize>() + 1;
        }
        let counts: Vec<usize> = children(data_type).iter().map(|child| self.count(child.data_type())).collect();
        match data_type {
            DataType::Struct(_) => counts.iter().sum::<usize>() + 1,
            DataType::List(_) | DataType::LargeList(_) | DataType::Map(..) => {
                self.of_item = self.of_item.max(counts.iter().sum());
                self.has_maps |= matches!(data_type, DataType::Map(..));
                1
            }
            other => width(other),
        }
    }
}

/// Returns the number of [`VALUE_BYTES`] that a value without parts takes, even if it is null.
pub fn width(data_type: &DataType) -> usize {
    match data_type {
        DataType::FixedSizeBinary(len) => 1 + *len as usize / VALUE_BYTES,
        _ => 1,
    }
}

/// Returns the fields that `paths` name, in the order of the schema. A path leads through structs and lists:
/// `customer.id`, `lines.sku`. `None` returns all fields.
pub fn select(fields: &Fields, paths: Option<&[String]>) -> Result<Fields> {
    let Some(paths) = paths else { return Ok(fields.clone()) };
    let chosen = choose(fields, &paths.iter().map(String::as_str).collect::<Vec<_>>())?;
    Ok(chosen)
}

fn choose(fields: &Fields, paths: &[&str]) -> Result<Fields> {
    if let Some(unknown) = paths.iter().find(|path| !fields.iter().any(|field| behind(field.name(), path).is_some())) {
        return Err(Error::unknown("column", unknown, fields.iter().map(|field| field.name().as_str())));
    }
    let mut chosen = Vec::new();
    for field in fields {
        // A name may have dots itself: the longest name that fits counts.
        let is_best = |path: &str| {
            let longer = |other: &FieldRef| other.name().len() > field.name().len();
            !fields.iter().any(|other| longer(other) && behind(other.name(), path).is_some())
        };
        let rests: Vec<&str> =
            paths.iter().filter(|path| is_best(path)).filter_map(|path| behind(field.name(), path)).collect();
        if rests.contains(&"") {
            chosen.push(field.clone());
        } else if !rests.is_empty() {
            chosen.push(Arc::new(within(field, &rests)?));
        }
    }
    Ok(chosen.into())
}

fn within(field: &Field, paths: &[&str]) -> Result<Field> {
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(choose(fields, paths)?),
        DataType::List(item) => DataType::List(Arc::new(within(item, paths)?)),
        DataType::LargeList(item) => DataType::LargeList(Arc::new(within(item, paths)?)),
        // Maps are given whole: a path would name a key, which is no field.
        other => {
            let expected = format!("no '{}' behind {}", paths[0], field.name());
            return Err(Error::invalid("columns", expected, other));
        }
    };
    Ok(field.clone().with_data_type(data_type))
}

/// Returns the rest of `path` behind `name`, without the dot. Empty if `path` is `name`.
fn behind<'a>(name: &str, path: &'a str) -> Option<&'a str> {
    let rest = path.strip_prefix(name)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('.') }
}

#[cfg(test)]
mod tests {
    use super::super::ddl;
    use super::*;

    fn chosen(text: &str, paths: &[&str]) -> String {
        let fields = ddl::parse(text).expect("parsed");
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        match select(&fields, Some(&paths)) {
            Ok(fields) => ddl::print(&fields).expect("printed"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn paths_choose_fields_through_structs_and_lists() {
        let text =
            "a int, b struct<c: int, d: struct<e: int, f: int>>, g array<struct<h: int, i: int>>, m map<string, int>";
        assert_eq!(chosen(text, &["b.d.f", "a"]), "a int, b struct<d: struct<f: int>>");
        assert_eq!(chosen(text, &["b.c", "b"]), "b struct<c: int, d: struct<e: int, f: int>>");
        assert_eq!(chosen(text, &["g.i"]), "g array<struct<i: int>>");
        assert_eq!(chosen(text, &["m"]), "m map<string, int>");
        assert_eq!(chosen(text, &["m.x"]).split(", got").next(), Some("columns: expected no 'x' behind m"));
        assert_eq!(chosen(text, &["b.x"]), "unknown column 'x'; did you mean c, d?");
    }

    #[test]
    fn a_name_with_dots_is_found_before_a_path() {
        let text = "a struct<b: int>, `a.b` string";
        assert_eq!(chosen(text, &["a.b"]), "`a.b` string");
        assert_eq!(chosen(text, &["a"]), "a struct<b: int>");
    }

    #[test]
    fn leaves_are_counted_by_row_and_by_item() {
        let fields =
            ddl::parse("a int, b struct<c: int, d: int>, g array<struct<h: int, i: array<int>>>").expect("parsed");
        assert_eq!(Leaves::of(&fields), Leaves { of_row: 5, of_item: 3, has_maps: false });
        assert!(Leaves::of(&ddl::parse("a map<string, int>").expect("parsed")).has_maps);
    }

    #[test]
    fn large_schemas_are_refused() {
        let wide: Fields = (0..=MAX_FIELDS).map(|i| Field::new(i.to_string(), DataType::Int32, true)).collect();
        assert!(check(&wide).expect_err("wide").to_string().contains("4096 fields"));
        let nest = |inner, _| DataType::List(Arc::new(Field::new("item", inner, true)));
        let deep = (0..MAX_DEPTH).fold(DataType::Int32, nest);
        assert!(check(&Fields::from(vec![Field::new("a", deep, true)])).is_err());
        assert!(check(&Fields::empty()).is_err());
        let twice: Fields = ["a", "b", "a"].iter().map(|name| Field::new(*name, DataType::Int32, true)).collect();
        let expected = "schema: expected each field once, got a twice";
        assert_eq!(check(&twice).expect_err("twice").to_string(), expected);
    }
}
