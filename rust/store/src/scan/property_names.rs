//! Which properties the column `properties` has.
use crate::{Error, Result};

/// Names of properties, compared as they are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyNames(Vec<String>);

impl PropertyNames {
    /// These names.
    ///
    /// # Errors
    /// [`Error::Invalid`]: there is none, or an empty one, which no property has.
    pub fn of(names: Vec<String>) -> Result<Self> {
        if names.is_empty() {
            return Err(Error::invalid("property_names", "at least one name", "none"));
        }
        if names.iter().any(String::is_empty) {
            return Err(Error::invalid("property_names", "names of properties", "an empty one"));
        }
        Ok(Self(names))
    }

    /// Whether a property of that name is among them.
    #[inline]
    pub fn has(&self, name: &[u8]) -> bool {
        self.0.iter().any(|chosen| chosen.as_bytes() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_and_an_empty_one_are_refused() {
        let refused = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            PropertyNames::of(names).expect_err("refused").to_string()
        };
        assert_eq!(refused(&[]), "property_names: expected at least one name, got none");
        assert_eq!(refused(&["color", ""]), "property_names: expected names of properties, got an empty one");
    }
}
