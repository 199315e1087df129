//! Converts Python's `TlsOptions`, and makes certificates.
use crate::error::{ArgumentError, remoting};
use pyo3::prelude::*;
use rmqfast_remoting::{ClientAuth, ClientTls, KeyPair, ServerTls, TlsMode, Trust};
use std::path::PathBuf;

#[derive(FromPyObject)]
pub struct PyTlsOptions {
    mode: String,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    trust: Option<PathBuf>,
    client_auth: String,
    verify: bool,
    check_host: bool,
}

impl PyTlsOptions {
    pub fn into_server(self) -> PyResult<ServerTls> {
        let client_auth = match self.client_auth.as_str() {
            "none" => ClientAuth::None,
            "optional" => ClientAuth::Optional,
            "require" => ClientAuth::Require,
            other => return Err(unknown("client_auth", "none, optional or require", other)),
        };
        let mode = match self.mode.as_str() {
            "disabled" => TlsMode::Disabled,
            "permissive" => TlsMode::Permissive,
            "enforcing" => TlsMode::Enforcing,
            other => return Err(unknown("mode", "disabled, permissive or enforcing", other)),
        };
        // without client certificates no file of authorities is needed
        let trust = if client_auth == ClientAuth::None { Trust::Anybody } else { trust(self.verify, self.trust)? };
        Ok(ServerTls { mode, key_pair: key_pair(self.certificate, self.key), client_auth, trust })
    }

    pub fn into_client(self) -> PyResult<ClientTls> {
        let trust = trust(self.verify, self.trust)?;
        Ok(ClientTls { key_pair: key_pair(self.certificate, self.key), trust, checks_host: self.check_host })
    }
}

fn trust(verify: bool, file: Option<PathBuf>) -> PyResult<Trust> {
    match (verify, file) {
        (true, Some(file)) => Ok(Trust::File(file)),
        // trusting everybody must be explicit
        (true, None) => Err(unknown("trust", "a file of authorities, or verify=False", "None")),
        (false, _) => Ok(Trust::Anybody),
    }
}

fn key_pair(certificate: Option<PathBuf>, key: Option<PathBuf>) -> Option<KeyPair> {
    certificate.zip(key).map(|(certificate, key)| KeyPair { certificate, key })
}

fn unknown(what: &str, expected: &str, got: &str) -> PyErr {
    ArgumentError::new_err(format!("{what}: expected {expected}, got {got}"))
}

/// Returns PEM strings: the certificate of an authority, its key, a server's certificate, and the server's key. `begin`
/// and `end` are year, month and day.
#[pyfunction]
pub fn make_certificates(
    py: Python<'_>,
    names: Vec<String>,
    begin: (i32, u8, u8),
    end: (i32, u8, u8),
) -> PyResult<(String, String, String, String)> {
    // released because making keys may take a while
    let certificates = py.detach(|| rmqfast_remoting::make_certificates(&names, begin, end)).map_err(remoting)?;
    Ok((certificates.authority, certificates.authority_key, certificates.server, certificates.server_key))
}
