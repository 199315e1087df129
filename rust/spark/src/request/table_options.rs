//! Removes what a catalog adds to the options of a table (`CREATE TABLE ... USING`).
//!
//! Source: `CatalogV2Util.convertToProperties` and `V2SessionCatalog` of Spark.
/// Prefix of an option that was written in `OPTIONS (...)`. Spark passes the option with and without it.
const PREFIX: &str = "option.";
/// Property that every table has.
const PROVIDER: &str = "provider";
/// The location of a table's files, which this source ignores.
const PATH: &str = "path";
/// Options that name the source of a read that has no path.
const SOURCES: [&str; 2] = ["nameserver", "storepath"];

/// Removes a table's properties and location from its options. Options that do not come from a table are not changed.
///
/// `is_option` says whether some read or sink has the name, which is in lower case.
pub fn without_properties(pairs: &[(String, String)], is_option: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let names: Vec<String> = pairs.iter().map(|(name, _)| name.to_lowercase()).collect();
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    // ordinary options have neither a provider nor the prefix
    let is_of_table = has(PROVIDER) || names.iter().any(|name| name.starts_with(PREFIX));
    let is_elsewhere = SOURCES.iter().any(|name| has(name));
    let is_kept = |name: &str| {
        // unknown names are kept only if they were written in OPTIONS, so that the parser can refuse them
        let is_given = has(&format!("{PREFIX}{name}")) || is_option(name);
        // Spark turns a user's `path` into the location, and gives every other table a location, too
        !name.starts_with(PREFIX) && is_given && !(name == PATH && is_elsewhere)
    };
    let user_options = pairs.iter().zip(&names).filter(|(_, name)| !is_of_table || is_kept(name));
    user_options.map(|(pair, _)| pair.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(pairs: &[(&str, &str)]) -> Vec<String> {
        let pairs: Vec<_> = pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let is_option = |name: &str| ["nameserver", "topic", "path", "failondataloss"].contains(&name);
        without_properties(&pairs, is_option).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn options_of_a_table_are_those_that_a_user_gave() {
        let given =
            [("nameServer", "a:1"), ("topic", "orders"), ("option.nameServer", "a:1"), ("option.topic", "orders")];
        let added = [("provider", "rocketmq"), ("owner", "me"), ("location", "file:/w/t"), ("path", "file:/w/t")];
        let properties = [("comment", "all orders"), ("quality", "gold"), ("is_managed_location", "true")];
        assert_eq!(left(&[&given[..], &added, &properties].concat()), ["nameServer", "topic"]);
        assert_eq!(
            left(&[&given[..], &added, &[("failOnDataLoss", "false")]].concat()),
            ["nameServer", "topic", "failOnDataLoss"]
        );
        let path = [("path", "file:/data/store"), ("location", "file:/data/store"), ("PROVIDER", "rocketmq")];
        assert_eq!(left(&path), ["path"]);
    }

    #[test]
    fn a_wrong_option_of_a_table_is_left_to_be_refused() {
        assert_eq!(left(&[("tpic", "a"), ("option.tpic", "a"), ("provider", "rocketmq"), ("owner", "me")]), ["tpic"]);
        assert_eq!(left(&[("tpic", "a"), ("path", "/data")]), ["tpic", "path"]);
    }
}
