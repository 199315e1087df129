//! Formats a row for an error: its number and its columns, in Python's notation and shortened.
use super::row::{Keys, Property, Row};
use super::row_batches::Target;
use crate::request::text::{quote, quote_bytes};

const SHOWN: usize = 48;

pub fn row_text(target: &Target, row: &Row<'_>, number: u64) -> String {
    let mut parts = Vec::new();
    // empty values and 0 are the defaults, so they are left out
    parts.extend(target.topic.as_deref().filter(|text| !text.is_empty()).map(|text| format!("topic: {}", short(text))));
    parts.extend(
        target
            .broker_name
            .as_deref()
            .filter(|text| !text.is_empty())
            .map(|text| format!("broker_name: {}", short(text))),
    );
    parts.extend(target.queue_id.filter(|id| *id != 0).map(|id| format!("queue_id: {id}")));
    parts.extend((target.delay_level != 0).then(|| format!("delay_level: {}", target.delay_level)));
    parts.push(match row.body {
        Some(body) => {
            let (shown, dots) = (&body[..body.len().min(SHOWN)], if body.len() > SHOWN { "..." } else { "" });
            format!("body: {} bytes {}{dots}", body.len(), quote_bytes(shown))
        }
        None => "body: null".to_owned(),
    });
    parts.extend(row.tags.map(|tags| format!("tags: {}", short(&text(tags)))));
    parts.extend(row.keys.as_ref().map(|keys| format!("keys: {}", short(&text(Keys::bytes(keys))))));
    parts.extend(row.properties.as_ref().map(|pairs| format!("properties: {}", map_text(pairs))));
    parts.extend(row.flag.map(|flag| format!("flag: {flag}")));
    format!("row {number} {{{}}}", parts.join(", "))
}

fn map_text(pairs: &[Property<'_>]) -> String {
    let value = |value: &Option<&[u8]>| value.map_or_else(|| "None".to_owned(), |value| quote(&text(value)));
    let entries: Vec<_> = pairs.iter().map(|(name, of)| format!("{}: {}", quote(&text(name)), value(of))).collect();
    let all = format!("{{{}}}", entries.join(", "));
    match all.char_indices().nth(4 * SHOWN) {
        Some((end, _)) => format!("{}...", &all[..end]),
        None => all,
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", quote(&text[..end])),
        None => quote(text),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_told_shortened() {
        let target = Target { topic: Some("orders".into()), queue_id: Some(3), ..Target::default() };
        let (body, tags, value) = ([0xff; 1000], "T".repeat(1000), "v".repeat(100));
        let pairs = vec![(&b"a"[..], Some(value.as_bytes())), (&b"b"[..], None), (&b"c"[..], Some(value.as_bytes()))];
        let row = Row {
            body: Some(&body),
            tags: Some(tags.as_bytes()),
            keys: Some(Keys::Text(b"k")),
            properties: Some(pairs),
            flag: Some(0),
            ..Row::default()
        };
        let said = row_text(&target, &row, 40);
        let bytes = format!("body: 1000 bytes b'{}'...", "\\xff".repeat(48));
        let start =
            format!("row 40 {{topic: 'orders', queue_id: 3, {bytes}, tags: '{}'..., keys: 'k', ", "T".repeat(48));
        assert!(said.starts_with(&start), "{said}");
        let map = format!("properties: {{'a': '{value}', 'b': None, 'c': '{}..., flag: 0}}", "v".repeat(65));
        assert!(said.ends_with(&map), "{said}");
        assert_eq!(row_text(&Target::default(), &Row::default(), 0), "row 0 {body: null}");
    }
}
