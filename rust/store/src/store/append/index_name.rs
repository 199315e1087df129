//! Names of index files: the local time of creation as yyyyMMddHHmmssSSS (`UtilAll.timeMillisToHumanString`).

/// Returns the name for a local time, in milliseconds since 1970.
pub fn of_millis(millis: i64) -> String {
    let (days, in_day) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let (seconds, millis) = (in_day / 1000, in_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}{millis:03}")
}

/// Returns the name for `millis`. If `last` is not smaller, returns the number that follows `last`, because the order
/// of the names is the order of the files.
pub fn behind(last: Option<&str>, millis: i64) -> String {
    let name = of_millis(millis);
    match last.and_then(|last| last.parse::<u64>().ok()) {
        Some(last) if name.parse().is_ok_and(|number: u64| number <= last) => format!("{:017}", last + 1),
        _ => name,
    }
}

/// Returns year, month and day for days since 1970. Years begin in March here, so that the leap day is the last day.
fn civil(days: i64) -> (i64, i64, i64) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    let days = days + 719_468; // Days since 1 March of year 0.
    let (era, day) = (days.div_euclid(DAYS_OF_400_YEARS), days.rem_euclid(DAYS_OF_400_YEARS));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let calendar_month = if month < 10 { month + 3 } else { month - 9 };
    let calendar_year = era * 400 + year + i64::from(calendar_month <= 2);
    (calendar_year, calendar_month, day_of_year - (153 * month + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_times_and_never_go_back() {
        for (millis, name) in [
            (0, "19700101000000000"),
            (951_782_400_123, "20000229000000123"),
            (1_700_000_000_000, "20231114221320000"),
            (4_107_542_399_999, "21000228235959999"),
            (4_107_542_400_000, "21000301000000000"),
        ] {
            assert_eq!(of_millis(millis), name);
        }
        assert_eq!(behind(Some("19700101000000000"), 0), "19700101000000001");
        assert_eq!(behind(Some("19700101000000000"), 5), "19700101000000005");
        assert_eq!(behind(None, 0), "19700101000000000");
    }
}
