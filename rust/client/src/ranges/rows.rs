//! Client-side filters of pulled messages. Brokers filter by tags and SQL92, but not by time or key.
use super::range::RangeRequest;
use super::warning::Warning;
use crate::error::{Error, Result};
use crate::fetched::{Part, batches_of_parts};
use crate::puller::{PulledAnswer, Queue};
use arrow_array::RecordBatch;
use rmqfast_store::scan::ScanRequest;
use rmqfast_store::scan::row::Row;
use std::borrow::Cow;

/// Keeps the messages that match `request`, and removes answers without a match. Damaged bodies are reported in
/// `warnings`, or as an error if the request is strict.
///
/// # Errors
/// [`Error::Corrupt`] if a body does not match its CRC, and the request is strict.
pub fn choose(request: &RangeRequest, fetched: &mut Vec<PulledAnswer>, warnings: &mut Vec<Warning>) -> Result<()> {
    // a CRC costs as much as the rest of a row: computed once, and a second time only if any body differs
    let drops_changed = request.scan.verify_crc && Report { request, warnings }.check_bodies(fetched)?;
    for answer in fetched.iter_mut() {
        if let Cow::Owned(rows) = choose_rows(answer, &request.scan, drops_changed) {
            answer.rows = rows;
        }
    }
    fetched.retain(|answer| !answer.rows.is_empty());
    Ok(())
}

/// Converts the chosen messages to record batches, in the order of `answers`.
///
/// # Errors
/// Fails like [`unreadable`]. Also for a body that cannot be decoded, if the request asks for it.
pub fn batches(
    request: &RangeRequest,
    answers: &[PulledAnswer],
    warnings: &mut Vec<Warning>,
) -> Result<Vec<RecordBatch>> {
    let parts = answers.iter().map(|answer| Part { body: &answer.body, rows: &answer.rows });
    // a reader has one broker, so all rows have the same name
    let broker_name = answers.first().map(|answer| answer.queue.broker_name.to_string());
    let scan = ScanRequest { broker_name, ..request.scan.clone() };
    let (batches, damage, bad_bodies) = batches_of_parts(parts, &scan)?;
    match bad_bodies.error() {
        Some(error) if scan.decode.is_some_and(|decode| decode.fails) => return Err(error.into()),
        Some(_) => warnings.push(Warning::BadBodies(bad_bodies)),
        None => {}
    }
    let offsets: Vec<i64> = damage.iter().map(|damage| damage.offset.cast_signed()).collect();
    unreadable(request, answers, &offsets, warnings)?;
    Ok(batches)
}

/// Reports messages whose bodies do not decompress, by their physical offsets.
///
/// # Errors
/// [`Error::Corrupt`] if there is any, and the request is strict.
pub fn unreadable(
    request: &RangeRequest,
    answers: &[PulledAnswer],
    offsets: &[i64],
    warnings: &mut Vec<Warning>,
) -> Result<()> {
    if offsets.is_empty() {
        return Ok(());
    }
    Report { request, warnings }.unreadable(answers, offsets)
}

fn choose_rows<'a>(fetched: &'a PulledAnswer, scan: &ScanRequest, drops_changed: bool) -> Cow<'a, [Row]> {
    let rows = fetched.matching_rows();
    let has_filter = scan.start_time.is_some() || scan.end_time.is_some() || scan.filters_properties();
    if !has_filter && !drops_changed {
        return rows;
    }
    let body = &fetched.body[..];
    let is_chosen = |row: &Row| {
        let Some(message) = row.message(body) else { return false };
        scan.times_match(message.store_timestamp())
            && scan.keys_match(row.uniq_key.of(body), row.keys.of(body))
            && (!drops_changed || message.body_crc_matches())
    };
    rows.iter().filter(|row| is_chosen(row)).copied().collect()
}

/// Reports damaged bodies as errors or warnings.
struct Report<'a> {
    request: &'a RangeRequest,
    warnings: &'a mut Vec<Warning>,
}

impl Report<'_> {
    /// Returns whether a body does not match its CRC. Checks all pulled messages, before other filters are applied.
    fn check_bodies(&mut self, fetched: &[PulledAnswer]) -> Result<bool> {
        let is_changed = |row: &Row, body: &[u8]| row.message(body).is_some_and(|message| !message.body_crc_matches());
        let places = places(fetched, is_changed);
        if !places.is_empty() {
            self.damage(&format!("{} bodies do not match their CRC", places.len()), &places, "leaves them out")?;
        }
        Ok(!places.is_empty())
    }

    fn unreadable(&mut self, fetched: &[PulledAnswer], offsets: &[i64]) -> Result<()> {
        // damage is identified by physical offset, as in scans of a store
        let is_unreadable =
            |row: &Row, body: &[u8]| row.message(body).is_some_and(|m| offsets.contains(&m.physical_offset()));
        let places = places(fetched, is_unreadable);
        let limit = self.request.scan.max_body_bytes;
        let text = format!("{} bodies do not decompress to {limit} bytes at most", places.len());
        self.damage(&text, &places, "gives them as null")
    }

    fn damage(&mut self, what: &str, places: &[String], otherwise: &str) -> Result<()> {
        let text = format!("{what}: {}", places.join("; "));
        if self.request.is_strict {
            return Err(Error::Corrupt(format!("{text}; on_damage=\"warn\" (failOnDataLoss=false) {otherwise}")));
        }
        self.warnings.push(Warning::Loss(text));
        Ok(())
    }
}

fn places(fetched: &[PulledAnswer], has: impl Fn(&Row, &[u8]) -> bool) -> Vec<String> {
    let rows = fetched.iter().flat_map(|fetched| fetched.rows.iter().map(move |row| (fetched, row)));
    let damaged = rows.filter(|(fetched, row)| has(row, &fetched.body));
    let place = |(fetched, row): (&PulledAnswer, &Row)| {
        let offset = row.message(&fetched.body).map_or(0, |message| message.queue_offset());
        let Queue { topic, broker_name, queue_id } = &*fetched.queue;
        format!("topic {topic}, broker {broker_name}, queue {queue_id}, offset {offset}")
    };
    damaged.map(place).collect()
}
