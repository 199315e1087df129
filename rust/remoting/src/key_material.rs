//! Reads certificates and keys from PEM files.
use crate::error::{Error, Result};
use crate::validity;
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

    /// Returns whether any file is configured.
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
    let validity = certificates.first().and_then(|first| validity::of(first));
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

/// Parses the certificates of authorities in a file.
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
