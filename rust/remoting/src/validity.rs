//! Parses the validity period of an X.509 certificate. All other parts are skipped.
use std::fmt;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// A time in seconds since 1970, with the string from the certificate for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    pub seconds: i64,
    text: String,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns the first and the last moment at which a DER certificate is valid. Returns `None` if the bytes are not a
/// certificate.
pub fn of(certificate: &[u8]) -> Option<(Moment, Moment)> {
    let (_, outer, _) = element(certificate).filter(|(tag, ..)| *tag == SEQUENCE)?;
    let (_, mut rest, _) = element(outer).filter(|(tag, ..)| *tag == SEQUENCE)?;
    // the version is optional
    if element(rest)?.0 == VERSION {
        rest = element(rest)?.2;
    }
    // skips serial number, algorithm and issuer
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let (_, validity, _) = element(rest).filter(|(tag, ..)| *tag == SEQUENCE)?;
    let (tag, begin, rest) = element(validity)?;
    let (end_tag, end, _) = element(rest)?;
    Some((moment(tag, begin)?, moment(end_tag, end)?))
}

/// Splits off the first DER element. Returns its tag, its content and the bytes behind it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // no certificate needs more than four bytes of length; 0x80, an indefinite length, is not DER
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// Parses a time of the form `YYMMDDHHMMSSZ`, or of the form with four digits for the year.
fn moment(tag: u8, text: &[u8]) -> Option<Moment> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let full = match tag {
        // RFC 5280: years from 50 on belong to the 20th century
        UTC_TIME if text.len() == 12 => format!("{}{text}", if text < "50" { "20" } else { "19" }),
        GENERALIZED_TIME if text.len() == 14 => text.to_owned(),
        _ => return None,
    };
    let part = |from: usize, to: usize| full.get(from..to)?.parse::<u32>().ok().map(i64::from);
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    let text = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC");
    Some(Moment { seconds: days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second, text })
}

/// Converts a date to days since 1970. Years begin in March here, so that the leap day is the last day of a year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month < 3);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_they_are_written() {
        let seconds = |tag, text: &str| moment(tag, text.as_bytes()).map(|moment| moment.seconds);
        assert_eq!(seconds(UTC_TIME, "700101000000Z"), Some(0));
        assert_eq!(seconds(UTC_TIME, "000229235959Z"), Some(951_868_799));
        assert_eq!(seconds(UTC_TIME, "491231235959Z"), Some(2_524_607_999));
        assert_eq!(seconds(GENERALIZED_TIME, "20500101000000Z"), Some(2_524_608_000));
        assert_eq!(seconds(GENERALIZED_TIME, "40960101000000Z"), Some(67_090_118_400));
        assert_eq!(seconds(UTC_TIME, "7001010000Z"), None);
        assert_eq!(seconds(UTC_TIME, "70é1010000000Z"), None);
    }

    #[test]
    fn the_validity_of_a_certificate_is_found_and_no_bytes_make_it_stumble() {
        let mut parameters = rcgen::CertificateParams::new(vec!["a".to_owned()]).expect("a name");
        parameters.not_before = rcgen::date_time_ymd(2001, 9, 9);
        parameters.not_after = rcgen::date_time_ymd(2051, 1, 2);
        let key = rcgen::KeyPair::generate().expect("a key");
        let made = parameters.self_signed(&key).expect("signed");
        let (begin, end) = of(made.der()).expect("a certificate");
        assert_eq!((begin.seconds, end.seconds), (999_993_600, 2_556_230_400));
        assert_eq!(end.to_string(), "2051-01-02 00:00:00 UTC");
        for cut in 0..made.der().len() {
            assert_eq!(of(&made.der()[..cut]), None);
        }
        assert_eq!(of(b"\x30\x84\xff\xff\xff\xff\x30"), None);
    }
}
