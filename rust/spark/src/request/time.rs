//! Parses times: milliseconds since 1970, or ISO 8601 like Python 3.11's `datetime.fromisoformat`.
use crate::error::{Error, Result};
use crate::request::text::{integer, is_digits, quote};

const DAY: i64 = 86_400_000_000;

/// Parses milliseconds since 1970, or ISO 8601, which is UTC if it has no zone. Returns milliseconds.
///
/// # Errors
/// The text is not a time, or is a number of seconds, microseconds or nanoseconds.
pub fn milliseconds(text: &str) -> Result<i64> {
    named_milliseconds("time", text)
}

/// Parses a time like [`milliseconds`], but calls it `name` in errors.
///
/// # Errors
/// See [`milliseconds`].
pub fn named_milliseconds(name: &str, text: &str) -> Result<i64> {
    // `2026` alone is a number of milliseconds, not a year
    let number = if is_digits(text.trim_start_matches('-')) { integer(text) } else { None };
    if let Some(number) = number {
        return check_unit(name, number).map(|()| number);
    }
    // rounded down, also before 1970
    iso(text).map(|micros| micros.div_euclid(1000)).ok_or_else(|| {
        let got = quote(text);
        Error::argument(format!("{name}: expected ISO 8601 as 2026-11-21T09:00:00, or milliseconds, got {got}"))
    })
}

/// Refuses numbers that look like seconds, microseconds or nanoseconds of the years 2001 to 2096. If they were taken as
/// milliseconds, the read would silently return no messages, or all.
fn check_unit(name: &str, number: i64) -> Result<()> {
    let wrong = |unit: &str, milliseconds: i64| {
        let text = format!("expected milliseconds since 1970, got {number}, which are {unit}: write {milliseconds}");
        Err(Error::argument(format!("{name}: {text}, or ISO 8601 as 2026-11-21T09:00:00")))
    };
    match number {
        1_000_000_000..4_000_000_000 => wrong("seconds", number * 1000),
        1_000_000_000_000_000..4_000_000_000_000_000 => wrong("microseconds", number / 1000),
        1_000_000_000_000_000_000..4_000_000_000_000_000_000 => wrong("nanoseconds", number / 1_000_000),
        _ => Ok(()),
    }
}

/// Refuses an end before the start. Errors call the two options by `names`.
///
/// # Errors
/// `end` is before `start`.
pub fn check_range(start: Option<i64>, end: Option<i64>, names: (&str, &str)) -> Result<()> {
    match (start, end) {
        (Some(start), Some(end)) if end < start => {
            Err(Error::argument(format!("{}: expected {}, {start}, or later, got {end}", names.1, names.0)))
        }
        _ => Ok(()),
    }
}

fn iso(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    // `2026W47` is the shortest form
    if bytes.len() < 7 {
        return None;
    }
    let date_end = date_end(bytes);
    let days = date(bytes.get(..date_end)?)?;
    // Python accepts any character between date and time
    let mut rest = text.get(date_end..)?.chars();
    let micros = if rest.next().is_some() { time(rest.as_str().as_bytes())? } else { 0 };
    Some(days * DAY + micros)
}

/// Returns the length of the date: `2026-11-21`, `20261121`, `2026-W47`, `2026W47`, or a week with a day.
fn date_end(text: &[u8]) -> usize {
    let at = |index: usize| text.get(index).copied().unwrap_or_default();
    match (text.len(), at(4), at(5)) {
        (7, ..) => 7,
        (_, b'-', b'W') if at(8) == b'-' && !(text.len() > 10 && at(10).is_ascii_digit()) => 10,
        (_, b'-', b'W') => 8,
        (_, b'-', _) => 10,
        (_, b'W', _) => {
            let digits_end = 7 + text[7..].iter().take_while(|b| b.is_ascii_digit()).count();
            match digits_end {
                7 | 8 => digits_end,
                // decides like Python's `_find_isoformat_datetime_separator` between a weekday and digits of a time
                even if even % 2 == 0 => 7,
                _ => 8,
            }
        }
        _ => 8,
    }
}

fn date(text: &[u8]) -> Option<i64> {
    let (year, rest) = number(text, 4)?;
    let separator: &[u8] = if rest.starts_with(b"-") { b"-" } else { b"" };
    let rest = &rest[separator.len()..];
    let days = if let Some(rest) = rest.strip_prefix(b"W") {
        let (week, rest) = number(rest, 2)?;
        let day = if rest.is_empty() { 1 } else { number(rest.strip_prefix(separator)?, 1)?.0 };
        of_week(year, week, day)?
    } else {
        let (month, rest) = number(rest, 2)?;
        let (day, rest) = number(rest.strip_prefix(separator)?, 2)?;
        rest.is_empty().then(|| of_month(year, month, day)).flatten()?
    };
    // the range of Python's `datetime`
    (days_before(1)..days_before(10_000)).contains(&days).then_some(days)
}

fn of_month(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = is_leap(year);
    let lengths = [31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let index = usize::try_from(month - 1).ok()?;
    let before: i64 = lengths[..index.min(12)].iter().sum();
    (1..=*lengths.get(index)?).contains(&day).then(|| days_before(year) + before + day - 1)
}

fn of_week(year: i64, week: i64, day: i64) -> Option<i64> {
    let first = days_before(year);
    // 1 January 1970 was a Thursday; the first week contains the year's first Thursday
    let weekday = (first + 3).rem_euclid(7);
    let monday = first - weekday + if weekday > 3 { 7 } else { 0 };
    // a year has 53 weeks if it begins or ends on a Thursday
    let has_53 = weekday == 3 || (weekday == 2 && is_leap(year));
    let is_week = (1..=52 + i64::from(has_53)).contains(&week) && (1..=7).contains(&day);
    is_week.then_some(monday + (week - 1) * 7 + day - 1)
}

fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

/// Returns the days from 1970 to 1 January of `year`.
fn days_before(year: i64) -> i64 {
    let past = year - 1;
    past * 365 + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400) - 719_162
}

/// Parses a time of day. Returns its microseconds since midnight, in UTC.
fn time(text: &[u8]) -> Option<i64> {
    let zone_at = text.iter().position(|b| matches!(b, b'+' | b'-' | b'Z'));
    // many programs print a space before the zone, `09:00:00 +01:00`, and Python accepts it
    let clock = &text[..zone_at.unwrap_or(text.len())];
    let clock = Clock::of(zone_at.and_then(|_| clock.strip_suffix(b" ")).unwrap_or(clock))?;
    if clock.hour > 23 || clock.minute > 59 || clock.second > 59 {
        return None;
    }
    let offset = match zone_at.map(|at| text[at..].split_at(1)) {
        None => 0,
        Some((b"Z", rest)) => rest.is_empty().then_some(0)?,
        Some((sign, zone)) => Clock::of(zone)?.micros() * if sign == b"-" { -1 } else { 1 },
    };
    (-DAY < offset && offset < DAY).then(|| clock.micros() - offset)
}

#[derive(Default)]
struct Clock {
    hour: i64,
    minute: i64,
    second: i64,
    fraction: i64,
}

impl Clock {
    /// Parses `09`, `09:00`, `0900`, `09:00:00` or `090000`, each with an optional fraction after a point or a comma.
    fn of(text: &[u8]) -> Option<Self> {
        let mut clock = Self::default();
        let mut has_colons = true;
        let mut rest = text;
        for index in 0..3 {
            let (value, behind) = number(rest, 2)?;
            *[&mut clock.hour, &mut clock.minute, &mut clock.second][index] = value;
            let Some((next, behind_next)) = behind.split_first() else { return Some(clock) };
            has_colons = if index == 0 { *next == b':' } else { has_colons };
            rest = match next {
                b':' if has_colons => behind_next,
                b'.' | b',' => {
                    rest = behind_next;
                    break;
                }
                _ if !has_colons => behind,
                _ => return None,
            };
        }
        // digits beyond microseconds are dropped, as in Python
        let digits = rest.len().min(6);
        let (value, rest) = number(rest, digits)?;
        clock.fraction = value * 10_i64.pow(6 - digits as u32);
        (digits > 0 && rest.iter().all(u8::is_ascii_digit)).then_some(clock)
    }

    fn micros(&self) -> i64 {
        ((self.hour * 60 + self.minute) * 60 + self.second) * 1_000_000 + self.fraction
    }
}

/// Parses a number with `digits` digits. Returns the number and the bytes after it.
fn number(text: &[u8], digits: usize) -> Option<(i64, &[u8])> {
    let (head, rest) = text.split_at_checked(digits)?;
    let add = |value: i64, digit: &u8| digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0'));
    Some((head.iter().try_fold(0, add)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_python_reads_them() {
        let expected = [
            ("0", 0),
            ("-5", -5),
            ("1970-01-01", 0),
            ("1970-01-01T00:00:01", 1000),
            ("2026-11-21 09:00", 1_795_251_600_000),
            ("2026-W47-6T0900", 1_795_251_600_000),
            ("20261121T09", 1_795_251_600_000),
            ("2024-02-29T23:59:59.123456Z", 1_709_251_199_123),
            ("2026-11-21T09:00:00.5+01:30", 1_795_246_200_500),
            ("0001-01-01", -62_135_596_800_000),
            ("2000-03-01", 951_868_800_000),
        ];
        for (text, time) in expected {
            assert_eq!(milliseconds(text).expect(text), time, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_time_is_refused() {
        for text in ["", "-", "tomorrow", "2026-02-29", "2026-11-21T25:00", "2026-W54-1", "é026-11-21"] {
            let error = milliseconds(text).expect_err(text).to_string();
            assert!(error.starts_with("time: expected ISO 8601"), "{error}");
        }
    }

    #[test]
    fn a_number_of_another_unit_is_refused_and_the_right_one_named() {
        for (number, unit) in [
            ("1795231240", "seconds"),
            ("1795231240903000", "microseconds"),
            ("1795231240903000000", "nanoseconds"),
            ("1000000000", "seconds"),
        ] {
            let error = named_milliseconds("start", number).expect_err(number).to_string();
            let expected = format!("start: expected milliseconds since 1970, got {number}, which are {unit}: write 1");
            assert!(error.starts_with(&expected), "{error}");
        }
        for number in ["0", "-1", "1", "86400000", "999999999", "4000000000", "1795231240903", "9223372036854775807"] {
            assert_eq!(milliseconds(number).expect(number).to_string(), number);
        }
    }
}
