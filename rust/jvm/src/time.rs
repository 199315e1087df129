//! Times as options say them.
use crate::failure::{Failure, Result, quoted};

/// Milliseconds since 1970 of a number of them, or of an ISO 8601 text; without a zone UTC is meant.
///
/// # Errors
/// A text that is no time.
pub fn milliseconds(text: &str) -> Result<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let number =
        (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten();
    number.or_else(|| iso(text)).ok_or_else(|| {
        let got = quoted(text);
        Failure::argument(format!("time: expected ISO 8601 as 2026-11-21T09:00:00, or milliseconds, got {got}"))
    })
}

/// `2026-11-21`, and behind `T` or a space `09:00`, `09:00:00`, `09:00:00.123`, with `Z`, `+01`, `+01:00` or nothing.
fn iso(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts = date.splitn(3, '-');
    let (year, month, day) = (number(parts.next()?, 4)?, number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let days = days_since_epoch(year, month, day)?;
    if rest.is_empty() {
        return Some(days * 86_400_000);
    }
    let time = rest.strip_prefix(['T', ' '])?;
    let zone_at = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at(zone_at);
    Some(days * 86_400_000 + of_day(time)? - offset(zone)?)
}

fn of_day(time: &str) -> Option<i64> {
    let (time, fraction) = time.split_once('.').map_or((time, ""), |(time, fraction)| (time, fraction));
    let mut parts = time.split(':').map(|part| number(part, 2));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 || fraction.len() > 6 {
        return None;
    }
    let millis = match fraction {
        "" => 0,
        digits => number(&format!("{digits:0<3}")[..3], 3).filter(|_| number(digits, digits.len()).is_some())?,
    };
    Some(((hour * 60 + minute) * 60 + second) * 1000 + millis)
}

fn offset(zone: &str) -> Option<i64> {
    let (sign, text) = match zone.split_at_checked(1) {
        None | Some(("Z", "")) => return Some(0),
        Some(("+", text)) => (1, text),
        Some(("-", text)) => (-1, text),
        Some(_) => return None,
    };
    let (hours, minutes) = text.split_once(':').unwrap_or((text, "00"));
    Some(sign * (number(hours, 2)? * 60 + number(minutes, 2).filter(|m| *m < 60)?) * 60_000)
}

fn number(text: &str, digits: usize) -> Option<i64> {
    (text.len() == digits && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// Days of the proleptic Gregorian calendar, counted in years that begin in March.
fn days_since_epoch(year: i64, month: i64, day: i64) -> Option<i64> {
    const BEFORE: [i64; 12] = [306, 337, 0, 31, 61, 92, 122, 153, 184, 214, 245, 275];
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let last = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year < 1 || !(1..=last).contains(&day) {
        return None;
    }
    let year = year - i64::from(month <= 2);
    let before = year * 365 + year / 4 - year / 100 + year / 400;
    Some(before + BEFORE[month as usize - 1] + day - 1 - 719_468)
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
            ("2026-11-21T09:00:00", 1_795_251_600_000),
            ("2026-11-21 09:00", 1_795_251_600_000),
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
        for text in ["", "-", "tomorrow", "2026-02-29", "2026-11-21T25:00", "2026-11-21x", "é026-11-21"] {
            let error = milliseconds(text).expect_err(text).to_string();
            assert!(error.starts_with("ArgumentError: time: expected ISO 8601"), "{error}");
        }
    }
}
