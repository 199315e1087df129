//! The answers of RocketMQ's own filter classes, replayed; `tests/interop/sql92` made them.
use std::fs;
use std::path::Path;

use rmqfast_store::filter::sql92::{Dialect, Sql92};
use rmqfast_store::filter::tag::TagExpression;
use serde_json::Value;

fn golden(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))).collect()
}

/// What the oracle would have written.
fn answer(case: &Value, dialect: Dialect) -> &'static str {
    let Ok(sql) = Sql92::parse_dialect(case["expr"].as_str().expect("an expression"), dialect) else { return "error" };
    let property = |name: &str| case["props"].get(name).and_then(Value::as_str);
    let answer = match sql.evaluate(property) {
        Err(_) => "throws",
        Ok(None) => "null",
        Ok(Some(false)) => "false",
        Ok(Some(true)) => "true",
    };
    assert_eq!(sql.matches(property), answer == "true", "{case}");
    answer
}

fn replay(name: &str, dialect: Dialect, at_least: usize) {
    let cases = golden(name);
    assert!(cases.len() >= at_least, "{name}: {} cases", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .map(|case| (case, answer(case, dialect)))
        .filter(|(case, got)| case["want"] != *got)
        .map(|(case, got)| format!("{case} got {got}"))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        cases.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}

#[test]
fn sql92_answers_as_rocketmq_4_9_4() {
    replay("sql92-4.9.4.jsonl", Dialect::V4, 6000);
}

#[test]
fn sql92_answers_as_rocketmq_5_3_3() {
    replay("sql92-5.3.3.jsonl", Dialect::V5, 2000);
}

#[test]
fn tag_expressions_hold_what_rocketmq_holds() {
    let cases = golden("tags-4.9.4.jsonl");
    assert!(cases.len() >= 20);
    for case in cases {
        let text = case["tags"].as_str().expect("an expression");
        let Ok(parsed) = TagExpression::parse(text) else {
            assert_eq!(case["error"], true, "{case}");
            continue;
        };
        assert_eq!(case["all"], parsed.is_all(), "{case}");
        assert_eq!(case["codes"], serde_json::json!(parsed.codes()), "{case}");
        // Java sorts by UTF-16 unit, so only the sets are compared.
        let mut tags: Vec<&str> = case["set"].as_array().expect("tags").iter().filter_map(Value::as_str).collect();
        tags.sort_unstable();
        assert_eq!(tags, parsed.tags(), "{case}");
    }
}
