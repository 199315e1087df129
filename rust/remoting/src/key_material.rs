//! Certificates and keys: reads them from PEM files, parses their period of validity, and creates an authority and a server
//! certificate for users who have neither.
use crate::error::{Error, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyUsagePurpose};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// PEM files of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPair {
    /// The certificate, followed by intermediate certificates.
    pub certificate: PathBuf,
    /// The certificate's key, without a password.
    pub key: PathBuf,
}

/// Content of a file, or the error from reading it. Empty if no file is configured.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Source {
    path: PathBuf,
    content: Option<std::result::Result<Vec<u8>, String>>,
}

/// Contents of all PEM files of a server or client. They are compared to detect changes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyMaterial {
    pub certificate: Source,
    pub key: Source,
    pub trust: Source,
}

impl KeyMaterial {
    pub fn read(pair: Option<&KeyPair>, trust: Option<&PathBuf>) -> Self {
        Self {
            certificate: pair.map(|pair| Source::read(&pair.certificate)).unwrap_or_default(),
            key: pair.map(|pair| Source::read(&pair.key)).unwrap_or_default(),
            trust: trust.map(|path| Source::read(path)).unwrap_or_default(),
        }
    }

    pub fn is_of_files(&self) -> bool {
        [&self.certificate, &self.key, &self.trust].iter().any(|source| source.content.is_some())
    }
}

impl Source {
    fn read(path: &Path) -> Self {
        let content = std::fs::read(path).map_err(|error| error.to_string());
        Self { path: path.to_owned(), content: Some(content) }
    }

    fn bytes(&self, what: &'static str) -> Result<&[u8]> {
        match &self.content {
            Some(Ok(bytes)) => Ok(bytes),
            Some(Err(error)) => Err(self.file_error(what, "a file that can be read", error)),
            // no file is configured, and the PEM parser finds nothing in an empty slice
            None => Ok(&[]),
        }
    }

    pub fn file_error(&self, what: &'static str, expected: &'static str, got: impl ToString) -> Error {
        Error::TlsFile { path: self.path.clone(), what, expected, got: got.to_string() }
    }
}

/// Parses the certificates of a file, and checks that the first is valid now.
pub fn certificates_of(source: &Source) -> Result<Vec<CertificateDer<'static>>> {
    let certificates = pem_certificates(source, "certificate")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let validity = certificates.first().and_then(|first| validity_of(first));
    let expected = "a certificate that is valid now";
    match validity {
        None => Err(source.file_error("certificate", "an X.509 certificate", "something else")),
        // checked here, because otherwise only the peers would fail, with a vague alert
        Some((_, end)) if end.seconds < now => {
            Err(source.file_error("certificate", expected, format!("one that expired at {end}")))
        }
        Some((begin, _)) if begin.seconds > now => {
            Err(source.file_error("certificate", expected, format!("one that is not valid before {begin}")))
        }
        Some(_) => Ok(certificates),
    }
}

pub fn key_of(source: &Source) -> Result<PrivateKeyDer<'static>> {
    let bytes = source.bytes("key")?;
    // both PEM formats of encrypted keys contain this word
    if bytes.windows(9).any(|word| word == b"ENCRYPTED") {
        let got = "an encrypted key; `openssl pkey -in KEY -out PLAIN` takes the password off";
        return Err(source.file_error("key", "a PEM key without a password", got));
    }
    PrivateKeyDer::from_pem_slice(bytes).map_err(|error| source.file_error("key", "a PEM key", error))
}

pub fn roots_of(source: &Source) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in pem_certificates(source, "trust")? {
        roots.add(certificate).map_err(|error| source.file_error("trust", "certificates of authorities", error))?;
    }
    Ok(roots)
}

fn pem_certificates(source: &Source, what: &'static str) -> Result<Vec<CertificateDer<'static>>> {
    let certificates: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(source.bytes(what)?).collect();
    let certificates = certificates.map_err(|error| source.file_error(what, "PEM certificates", error))?;
    if certificates.is_empty() {
        return Err(source.file_error(what, "PEM certificates", "none"));
    }
    Ok(certificates)
}

/// Returns the error for a failure of the TLS library that no file has caused.
pub fn unusable(error: &impl fmt::Display) -> Error {
    Error::io("setting up TLS", io::Error::other(error.to_string()))
}

pub type Date = (i32, u8, u8);

/// Certificates and keys as PEM strings. The keys are PKCS#8 without a password.
#[derive(Debug)]
pub struct Certificates {
    /// Certificate of the authority, which peers must trust.
    pub authority: String,
    /// Private key of the authority. It can sign further certificates that peers trust, so it must be kept secret.
    pub authority_key: String,
    pub server: String,
    pub server_key: String,
}

/// Creates the certificates of an authority and of a server, valid from `begin` to `end`. `names` are the host names
/// and addresses of the server. Fails with [`Error::Malformed`] without a name; [`Error::Io`] for an invalid name, or
/// if the library fails.
pub fn make_certificates(names: &[String], begin: Date, end: Date) -> Result<Certificates> {
    if names.is_empty() {
        return Err(Error::malformed("names of a certificate", "at least one", 0));
    }
    let failed = |error| unusable(&error);
    let (authority_key, server_key) =
        (rcgen::KeyPair::generate().map_err(failed)?, rcgen::KeyPair::generate().map_err(failed)?);
    let mut authority = params(&[], "rmqfast authority", begin, end)?;
    // path length 0: it signs servers, but no further authorities
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let mut server = params(names, "rmqfast server", begin, end)?;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    server.use_authority_key_identifier_extension = true;
    let certificate = authority.self_signed(&authority_key).map_err(failed)?;
    let signed = server.signed_by(&server_key, &Issuer::from_params(&authority, &authority_key)).map_err(failed)?;
    Ok(Certificates {
        authority: certificate.pem(),
        authority_key: authority_key.serialize_pem(),
        server: signed.pem(),
        server_key: server_key.serialize_pem(),
    })
}

fn params(names: &[String], common_name: &str, begin: Date, end: Date) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(names).map_err(|error| unusable(&error))?;
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = rcgen::date_time_ymd(begin.0, begin.1, begin.2);
    params.not_after = rcgen::date_time_ymd(end.0, end.1, end.2);
    Ok(params)
}

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// A time in seconds since 1970, and the same time as a string for messages.
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

/// Returns the begin and end of a DER certificate's validity, or `None` if it is not a certificate.
fn validity_of(certificate: &[u8]) -> Option<(Moment, Moment)> {
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

/// Splits off the first DER element. Returns its tag, its content and the bytes behind it, or `None` if it is
/// incomplete or not valid DER.
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

/// Parses a time of the form `YYMMDDHHMMSSZ`, or of the form with four digits for the year, as `tag` says. Returns
/// `None` for another form.
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
        let (begin, end) = validity_of(made.der()).expect("a certificate");
        assert_eq!((begin.seconds, end.seconds), (999_993_600, 2_556_230_400));
        assert_eq!(end.to_string(), "2051-01-02 00:00:00 UTC");
        for cut in 0..made.der().len() {
            assert_eq!(validity_of(&made.der()[..cut]), None);
        }
        assert_eq!(validity_of(b"\x30\x84\xff\xff\xff\xff\x30"), None);
    }
}
