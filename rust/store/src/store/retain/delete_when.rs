//! The hours of the day at which expired files are removed.
//!
//! Source: `UtilAll.isItTimeToDo`. In Java an invalid number skips the whole run, and an hour above 23 never comes.
use crate::{Error, Result};

const HOUR_MS: i64 = 3_600_000;
const HOURS: u32 = 24;

/// A set of hours (`deleteWhen`), one bit for each hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteWhen(u32);

impl Default for DeleteWhen {
    fn default() -> Self {
        Self(1 << 4)
    }
}

impl DeleteWhen {
    /// Parses hours separated by `;`, such as `04` or `04;16`.
    pub fn parse(text: &str) -> Result<Self> {
        let refused = || Error::invalid("delete_when", "hours from 00 to 23, with ';' between several", text);
        // Java's `split` drops an empty last part.
        let hours = text.strip_suffix(';').unwrap_or(text).split(';');
        let bits = hours.map(|hour| hour.parse().ok().filter(|hour: &u32| *hour < HOURS).map(|hour| 1 << hour));
        let all = bits.collect::<Option<Vec<u32>>>().ok_or_else(refused)?;
        Ok(Self(all.into_iter().fold(0, |set, bit| set | bit)))
    }

    /// Returns whether the local hour is in the set.
    pub fn contains(self, now_ms: i64, zone_offset_ms: i64) -> bool {
        let hour = now_ms.saturating_add(zone_offset_ms).div_euclid(HOUR_MS).rem_euclid(i64::from(HOURS));
        self.0 & (1 << hour) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns 1970-01-02 at `hour` UTC, plus `ms` milliseconds.
    fn at(hour: i64, ms: i64) -> i64 {
        (24 + hour) * HOUR_MS + ms
    }

    #[test]
    fn an_hour_is_met_from_its_first_millisecond_to_its_last_in_local_time() {
        let four = DeleteWhen::default();
        assert_eq!(four, DeleteWhen::parse("04").expect("an hour"));
        for (now, zone, expected) in [
            (at(4, 0), 0, true),
            (at(4, HOUR_MS - 1), 0, true),
            (at(5, 0), 0, false),
            (at(4, -1), 0, false),
            (at(20, 0), 8 * HOUR_MS, true),
            (at(4, 0), 8 * HOUR_MS, false),
            (at(9, 30 * 60_000), -(5 * HOUR_MS + HOUR_MS / 2), true),
            (at(4, 0) - 10 * 24 * HOUR_MS, 0, true),
        ] {
            assert_eq!(four.contains(now, zone), expected, "{now} {zone}");
        }
    }

    #[test]
    fn several_hours_are_separated_by_semicolons() {
        for text in ["4;16", "04;16", "16;04;", "4;16;16"] {
            let when = DeleteWhen::parse(text).expect("hours");
            let met: Vec<i64> = (0..24).filter(|hour| when.contains(at(*hour, 7), 0)).collect();
            assert_eq!(met, [4, 16], "{text}");
        }
    }

    #[test]
    fn what_is_no_hour_is_refused() {
        for text in ["", ";", "24", "-1", "4,16", "4;;16", "4; 16", "noon"] {
            let error = DeleteWhen::parse(text).expect_err(text).to_string();
            assert!(error.contains("delete_when") && error.contains("00 to 23"), "{error}");
        }
    }
}
