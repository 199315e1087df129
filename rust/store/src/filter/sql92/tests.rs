use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn sql(text: &str) -> Sql92 {
    Sql92::parse(text).unwrap_or_else(|e| panic!("{e}"))
}

/// Evaluates `text` for the values of the properties `a` and `b`.
fn evaluate(text: &str, a: Option<&str>, b: Option<&str>) -> Result<Option<bool>, EvaluationError> {
    sql(text).evaluate(|name| match name {
        "a" => a,
        "b" => b,
        _ => None,
    })
}

fn fault(text: &str) -> (usize, String) {
    match Sql92::parse(text) {
        Err(Error::Expression { expression, position, reason }) => {
            assert_eq!(expression, text);
            (position, reason)
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_message_matches_only_if_the_result_is_true() {
    let orders = sql("price BETWEEN 10 AND 20 AND region IN ('eu', 'us') AND note IS NULL");
    let message = HashMap::from([("price", "15"), ("region", "eu")]);
    assert!(orders.matches(|name| message.get(name).copied()));
    assert!(!orders.matches(|_| None));
    assert_eq!(orders.properties().collect::<Vec<_>>(), ["price", "region", "note"]);
}

#[test]
fn a_name_used_twice_is_listed_once() {
    assert_eq!(sql("a > 1 AND (b = a OR a < 0)").properties().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn a_missing_property_is_null_on_the_left_and_unequal_on_the_right() {
    assert_eq!(evaluate("a = 1", None, None), Ok(None));
    assert_eq!(evaluate("1 = a", None, None), Ok(Some(false)));
    assert_eq!(evaluate("1 <> a", None, None), Ok(Some(true)));
    assert_eq!(evaluate("a = b", None, None), Ok(Some(true)));
}

#[test]
fn one_bad_number_fails_the_whole_expression_unless_it_is_never_reached() {
    assert_eq!(evaluate("a > 1 OR b = 'x'", Some("q"), Some("x")), Err(EvaluationError::NotANumber));
    assert_eq!(evaluate("b = 'x' OR a > 1", Some("q"), Some("x")), Ok(Some(true)));
    assert_eq!(evaluate("TRUE = a", Some("true"), None), Err(EvaluationError::BooleanWithString));
}

#[test]
fn not_binds_tighter_than_equal() {
    // Parsed as (NOT a) = TRUE.
    assert_eq!(evaluate("NOT a = TRUE", Some("true"), None), Ok(Some(true)));
}

#[test]
fn text_after_a_complete_expression_is_ignored() {
    assert_eq!(sql("a LIKE 'x%' AND @!").evaluate(|_| Some("xy")), Ok(Some(false)));
}

#[test]
fn texts_of_5_x_are_names_in_4_x() {
    assert!(evaluate("a CONTAINS 'b'", Some("abc"), None) == Ok(Some(true)));
    assert!(evaluate("a NOT STARTSWITH 'b'", None, None) == Ok(Some(false)));
    let old = Sql92::parse_dialect("contains = 1", Dialect::V4).expect("a name in 4.x");
    assert!(old.matches(|_| Some("1")));
    assert!(Sql92::parse("contains = 1").is_err());
}

#[test]
fn errors_tell_the_position_in_characters_and_the_way_out() {
    for (text, position, word) in [
        ("a != 1", 2, "<>"),
        ("x = '日本' AND a ! 1", 15, "'!'"),
        ("a = NULL", 2, "IS NULL"),
        ("a >", 3, "found the end"),
        ("a IN (1)", 6, "found '1'"),
        ("a BETWEEN 5 AND 1", 2, "lower bound"),
        ("a > 'x'", 2, "ordered"),
        ("a = 0.0", 4, "write 0"),
        ("a = 9223372036854775808", 4, "9223372036854775807"),
        ("a = 'x", 4, "closing quote"),
        ("5", 0, "condition"),
        ("", 0, "found the end"),
    ] {
        let (at, reason) = fault(text);
        assert_eq!(at, position, "{text}: {reason}");
        assert!(reason.contains(word), "{text}: {reason}");
    }
}

#[test]
fn hostile_nesting_is_an_error_on_a_small_stack() {
    let hostile = || {
        for text in ["(".repeat(100_000), "NOT ".repeat(100_000), "- ".repeat(100_000), "+(".repeat(100_000)] {
            assert!(fault(&text).1.contains("nested deeper"), "{}", &text[..8]);
        }
        for tail in [" IS NULL", " = b", " <> TRUE", " IS NOT NULL"] {
            assert!(fault(&format!("a{}", tail.repeat(10_000))).1.contains("nested deeper"), "{tail}");
        }
    };
    on_a_small_stack(hostile);
}

#[test]
fn the_deepest_legal_nesting_evaluates_on_a_small_stack() {
    on_a_small_stack(|| {
        let depth = usize::from(MAX_DEPTH) - 1;
        let parentheses = format!("{}a = 1{}", "(".repeat(depth), ")".repeat(depth));
        assert!(sql(&parentheses).matches(|_| Some("1")));
        let nots = format!("{}a = 1{}", "NOT (".repeat(depth - 1), ")".repeat(depth - 1));
        assert!(sql(&nots).matches(|_| Some("1")));
        let mixed = format!("{}a = 1{}", "(a = 1 AND (b = 1 OR ".repeat(depth / 2 - 1), "))".repeat(depth / 2 - 1));
        assert!(sql(&mixed).matches(|_| Some("1")));
    });
}

/// Runs `work` on a quarter of the default stack of a Rust thread.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(512 * 1024).spawn(work).expect("a thread");
    thread.join().expect("no overflow and no failed assertion");
}

#[test]
fn a_long_list_of_conditions_is_not_deep() {
    let text = vec!["a = 1"; 50_000].join(" AND ");
    assert!(sql(&text).matches(|_| Some("1")));
}

#[test]
fn an_expression_beyond_the_length_limit_is_refused() {
    let text = format!("a = '{}'", "x".repeat(MAX_LEN));
    assert!(matches!(Sql92::parse(&text), Err(Error::Invalid { what: "sql", .. })));
}

/// Generates sentences of random words. Many more of them compile than of random characters.
fn sentence() -> impl Strategy<Value = String> {
    const WORDS: [&str; 32] = [
        "a", "b", "1", "2.5", "'x'", "''", "(", ")", ",", "=", "<>", "<", ">=", "AND", "OR", "NOT", "IS", "NULL", "IN",
        "BETWEEN", "TRUE", "-", "+", "CONTAINS", "ENDSWITH", "/*", "*/", "--", "\n", "'", "5L", "!",
    ];
    prop::collection::vec(prop::sample::select(&WORDS[..]), 0..24).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_compiles_or_fails_without_a_panic(text in "\\PC{0,60}", value in "\\PC{0,12}") {
        if let Ok(sql) = Sql92::parse(&text) {
            let _ = sql.evaluate(|_| Some(&value));
        }
    }

    #[test]
    fn any_sentence_compiles_or_fails_without_a_panic(text in sentence(), value in "[-+0-9.eExXpPfFNa ٣]{0,8}") {
        match Sql92::parse(&text) {
            Ok(sql) => {
                let with = sql.evaluate(|_| Some(&value));
                prop_assert_eq!(sql.matches(|_| Some(&value)), with == Ok(Some(true)));
            }
            Err(Error::Expression { position, .. }) => prop_assert!(position <= text.chars().count()),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn a_double_prints_and_reads_back(value in any::<f64>()) {
        prop_assert_eq!(evaluate::java_double(&format!("{value:e}")).map(f64::to_bits), value.is_finite().then(|| value.to_bits()));
    }
}
