//! Files of brokers, byte for byte; truncated and damaged files; errors with their positions.
use super::*;
use Dialect::{Fastjson1, Fastjson2};

/// Files of 4.9.4 and 5.3.3 brokers, shortened. Only consumerOrderInfo is written by fastjson 1.2.69 directly.
const FASTJSON1: [&str; 7] = [
    "{\n\t\"offsetTable\":{1:6,2:6,3:20,4:20\n\t}\n}",
    "{\n\t\"offsetTable\":{}\n}",
    "{\n\t\"offsetTable\":{\n\t\t\"%RETRY%g@g\":{0:0\n\t\t},\n\t\t\"fx_tx@fx_g_tx\":{0:2,1:2\n\t\t}\n\t}\n}",
    "{\n\t\"filterDataByTopic\":{\n\t\t\"12\":{\n\t\t\t\"groupFilterData\":{\n\t\t\t\t\"fx_sql\":{\n\t\t\t\t\t\
     \"bloomFilterData\":{\n\t\t\t\t\t\t\"bitNum\":112,\n\t\t\t\t\t\t\"bitPos\":[68,99,18]\n\t\t\t\t\t},\
     \n\t\t\t\t\t\"dead\":true,\n\t\t\t\t\t\"expression\":\"a > 0 AND color IS NOT NULL\"\n\t\t\t\t}\
     \n\t\t\t},\n\t\t\t\"topic\":\"12\"\n\t\t}\n\t}\n}",
    "{\n\t\"dataVersion\":{\n\t\t\"counter\":0,\n\t\t\"stateVersion\":0,\n\t\t\"timestamp\":1795232018211\n\t},\n\t\
     \"groupTopicMap\":{\n\t\t\"fy_failing\":[\"fy_retry\",\"%RETRY%fy_failing\"]\n\t},\n\t\"offsetTable\":{\n\t\t\
     \"fy_retry@fy_failing\":{0:7,1:6,2:7\n\t\t}\n\t}\n}",
    "{\n\t\"table\":{\n\t\t\"t@g\":{0:{\n\t\t\t\t\"o\":[\n\t\t\t\t\t1,\n\t\t\t\t\t2\n\t\t\t\t],\
     \n\t\t\t\t\"oc\":{5:1\n\t\t\t\t}\n\t\t\t},3:{\n\t\t\t\t\"o\":[]\n\t\t\t}\n\t\t}\n\t}\n}",
    "{\n\t\"other\":{\n\t\t\"k\":[{\n\t\t\t\"y\":\"1\",\n\t\t\t\"z\":1\n\t\t},{\n\t\t\t\"z\":1\n\t\t}]\n\t}\n}",
];

/// Files of a 5.4.0 broker, shortened. Files with entries are written by its fastjson2 directly.
const FASTJSON2: [&str; 4] = [
    "{\n\t\"orderedConsumptionLevel\":\"QUEUE\",\n\t\"table\":{\n\t\t\n\t}\n}",
    "{\n\t\"groupTopicMap\":{\n\t\t\"g\":[\n\t\t\t\"q\",\n\t\t\t\"r\"\n\t\t]\n\t},\
     \n\t\"offsetTable\":{\n\t\t\"t@g\":{\n\t\t\t0:5,\n\t\t\t1:7\n\t\t}\n\t}\n}",
    "{\n\t\"offsetTable\":{\n\t\t1:6,\n\t\t2:7\n\t}\n}",
    "{\n\t\"table\":{\n\t\t\"t@g\":{\n\t\t\t0:{\n\t\t\t\t\"o\":[1,2],\n\t\t\t\t\
     \"oc\":{\n\t\t\t\t\t5:1\n\t\t\t\t}\n\t\t\t}\n\t\t}\n\t}\n}",
];

fn error(text: &str) -> String {
    parse(text.as_bytes()).expect_err(text).to_string()
}

#[test]
fn files_of_real_brokers_are_written_byte_for_byte_as_read() {
    for (dialect, texts) in [(Fastjson1, &FASTJSON1[..]), (Fastjson2, &FASTJSON2[..])] {
        for text in texts {
            let value = parse(text.as_bytes()).expect(text);
            assert_eq!(write(&value, dialect), *text);
            // Both dialects and plain JSON have the same value.
            assert_eq!(parse(to_fastjson(&value).as_bytes()).as_ref(), Ok(&value));
            assert_eq!(parse(value.to_string().as_bytes()), Ok(value));
        }
    }
}

#[test]
fn integer_keys_are_read_bare_and_quoted_and_nothing_in_a_string_is_touched() {
    let plain = serde_json::json!({"0": 5, "-1": {"7": [1, 2]}, "s": "{0:5,1:7}\\\"{2:3", "e": 1e3});
    let texts = [
        r#"{0:5,-1:{"7":[1,2]},"s":"{0:5,1:7}\\\"{2:3","e":1e3}"#,
        "{\t0 :5,\n-1\r:{ 7\n:[1,2]},\"s\":\"{0:5,1:7}\\\\\\\"{2:3\",\"e\":1e3}",
        r#"{"0":5,"-1":{"7":[1,2]},"s":"{0:5,1:7}\\\"{2:3","e":1e3}"#,
    ];
    for text in texts {
        assert_eq!(parse(text.as_bytes()), Ok(plain.clone()), "{text}");
    }
}

#[test]
fn a_truncated_file_is_an_error_with_its_place_at_every_length() {
    for text in FASTJSON1.iter().chain(&FASTJSON2) {
        for len in 0..text.len() {
            assert!(matches!(parse(&text.as_bytes()[..len]), Err(ConfigError::Syntax { .. })), "{text} {len}");
        }
    }
    assert_eq!(error("{\n\t\"offsetTable\":{1:6,2:"), "line 2 column 22: EOF while parsing a value");
}

#[test]
fn errors_tell_the_column_of_the_file_not_of_the_quoted_text() {
    assert_eq!(error("{\n1:6,22:7,x:8}"), "line 2 column 10: key must be a string");
    assert_eq!(error("{0:5,1:7}}"), "line 1 column 10: trailing characters");
    for text in ["[1:2]", "[0,1:2]", "{-:1}", "{1.5:1}", "{a:1}", "{0:5,}", "{'a':1}", "1:2", "", "\"\\", "{\"a\":1 2}"]
    {
        assert!(parse(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn a_flipped_byte_is_another_number_or_an_error() {
    assert_eq!(parse(b"{0:5,1:7}").map(|value| value["1"].as_i64()), Ok(Some(7)));
    assert_eq!(parse(b"{0:5,1:6}").map(|value| value["1"].as_i64()), Ok(Some(6)));
    assert!(parse(b"{0:5,1;7}").is_err() && parse(b"{\"\xFF\":7}").is_err());
}

#[test]
fn depth_and_length_are_limited() {
    let nested = |levels: usize| [b"{0:".repeat(levels), b"1".to_vec(), b"}".repeat(levels)].concat();
    assert!(parse(&nested(127)).is_ok());
    assert!(parse(&nested(100_000)).is_err_and(|e| e.to_string().ends_with("recursion limit exceeded")));
    assert_eq!(parse(&vec![0; MAX_LEN + 1]), Err(ConfigError::TooLong(MAX_LEN + 1)));
}

#[test]
fn strings_are_escaped_as_by_each_fastjson() {
    let value = Value::from("x\u{1}\u{b}\u{7f}\u{85}\u{2028}é/\\\"\u{8}\u{c}\n\r\t<>&'😀");
    let old = r#""x\u0001\u000B\u007F\u0085\u2028é/\\\"\b\f\n\r\t<>&'😀""#;
    let new = "\"x\\u0001\\u000b\u{7f}\u{85}\u{2028}é/\\\\\\\"\\b\\f\\n\\r\\t<>&'😀\"";
    assert_eq!((to_fastjson(&value), write(&value, Fastjson2)), (old.to_owned(), new.to_owned()));
    assert_eq!((parse(old.as_bytes()), parse(new.as_bytes())), (Ok(value.clone()), Ok(value)));
}

#[test]
fn topics_and_groups_named_by_integers_stay_quoted() {
    let value = serde_json::json!({"topicConfigTable": {"12": {"perm": 6}}, "forbiddenTable": {"1": {"2": 3}}});
    let text = to_fastjson(&value);
    assert!(text.contains("\t\"12\":{\n") && text.contains("\t\"1\":{\n\t\t\t\"2\":3\n"), "{text}");
}

#[test]
fn a_byte_order_mark_is_passed_over_and_of_a_key_given_twice_the_last_one_counts() {
    assert_eq!(parse(b"\xEF\xBB\xBF{\"a\":{0:5,\"0\":7}}"), Ok(serde_json::json!({"a": {"0": 7}})));
    assert_eq!(parse(b"{\"a\":{0:5},\"a\":{1:7}}"), Ok(serde_json::json!({"a": {"1": 7}})));
}

#[test]
fn what_stands_behind_the_text_is_refused_and_so_is_a_number_that_is_none() {
    for text in
        ["{\"a\":1}x", "{\"a\":1}\0\0", "{\"a\":1}{", "{\"a\":NaN}", "{\"a\":-Infinity}", "{\"a\":1,}", "{'a':1}"]
    {
        assert!(parse(text.as_bytes()).is_err(), "{text}");
    }
}
