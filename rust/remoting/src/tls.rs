//! TLS of servers and clients: modes, trust and client certificates.
//!
//! Source: `TlsSystemConfig`, `TlsHelper.buildSslContext`, `TlsMode`.
use crate::error::Result;
use crate::key_material::{KeyMaterial, KeyPair, certificates_of, key_of, roots_of, unusable};
use crate::verifier::{AnyClient, AnyName, AnyServer};
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, ServerConfig};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| Arc::new(rustls::crypto::ring::default_provider()));
const AUTHORITIES: &str = "certificates of authorities";

/// Tells which connections a server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    Disabled,
    /// Connections with TLS and connections without TLS.
    Permissive,
    Enforcing,
}

/// Tells whether a server asks clients for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    None,
    /// A client may show a certificate.
    Optional,
    /// A client must show a certificate.
    Require,
}

/// Tells which certificates of peers are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Certificates that were signed by an authority in this PEM file.
    File(PathBuf),
    /// Any certificate. Protects against eavesdropping, but not against a man in the middle.
    Anybody,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    pub mode: TlsMode,
    /// Certificate of the server. With `None` a self-signed certificate is created. No client can verify it; it
    /// corresponds to `tls.test.mode.enable`.
    pub key_pair: Option<KeyPair>,
    /// Tells whether clients must show a certificate.
    pub client_auth: ClientAuth,
    /// Tells which certificates of clients are accepted.
    pub trust: Trust,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTls {
    /// Certificate of the client, which it shows to servers that ask for one.
    pub key_pair: Option<KeyPair>,
    /// Tells which certificates of servers are accepted.
    pub trust: Trust,
    /// Whether the server's certificate must match the host name.
    pub checks_host: bool,
}

impl ServerTls {
    /// Reads the current contents of the files.
    pub(crate) fn material(&self) -> KeyMaterial {
        KeyMaterial::read(self.key_pair.as_ref(), self.trust_of_clients())
    }

    fn trust_of_clients(&self) -> Option<&PathBuf> {
        match &self.trust {
            Trust::File(path) if self.client_auth != ClientAuth::None => Some(path),
            _ => None,
        }
    }

    /// Returns the rustls configuration for new connections.
    ///
    /// # Errors
    /// [`crate::Error::TlsFile`].
    pub(crate) fn config(&self, material: &KeyMaterial) -> Result<Arc<ServerConfig>> {
        let builder = ServerConfig::builder_with_provider(PROVIDER.clone());
        let builder = builder.with_safe_default_protocol_versions().map_err(|e| unusable(&e))?;
        let builder = builder.with_client_cert_verifier(self.client_verifier(material)?);
        let (chain, key) = match &self.key_pair {
            Some(_) => own(material)?,
            None => self_signed()?,
        };
        let built = builder.with_single_cert(chain, key);
        let mut config = built.map_err(|error| material.key.file_error("key", "the key of the certificate", error))?;
        // no session resumption: connections live long, and a resumed session would bypass a new trust file
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config.into())
    }

    fn client_verifier(&self, material: &KeyMaterial) -> Result<Arc<dyn ClientCertVerifier>> {
        let is_mandatory = self.client_auth == ClientAuth::Require;
        if self.client_auth == ClientAuth::None {
            return Ok(WebPkiClientVerifier::no_client_auth());
        }
        if self.trust == Trust::Anybody {
            return Ok(Arc::new(AnyClient { provider: PROVIDER.clone(), is_mandatory }));
        }
        let roots = Arc::new(roots_of(&material.trust)?);
        let builder = WebPkiClientVerifier::builder_with_provider(roots, PROVIDER.clone());
        // without a certificate the client is accepted; a certificate that it does show must be valid
        let builder = if is_mandatory { builder } else { builder.allow_unauthenticated() };
        let built = builder.build();
        built.map(|verifier| verifier as _).map_err(|error| material.trust.file_error("trust", AUTHORITIES, error))
    }
}

impl ClientTls {
    /// Returns the rustls configuration, from the current contents of the files.
    ///
    /// # Errors
    /// [`crate::Error::TlsFile`].
    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>> {
        let trusted = match &self.trust {
            Trust::File(path) => Some(path),
            Trust::Anybody => None,
        };
        let material = KeyMaterial::read(self.key_pair.as_ref(), trusted);
        let builder = ClientConfig::builder_with_provider(PROVIDER.clone());
        let builder = builder.with_safe_default_protocol_versions().map_err(|e| unusable(&e))?;
        // `dangerous` is rustls's name for any verifier of one's own, even one that trusts only a file
        let builder = builder.dangerous().with_custom_certificate_verifier(self.server_verifier(&material)?);
        if self.key_pair.is_none() {
            return Ok(builder.with_no_client_auth().into());
        }
        let (chain, key) = own(&material)?;
        let built = builder.with_client_auth_cert(chain, key);
        built.map(Arc::new).map_err(|error| material.key.file_error("key", "the key of the certificate", error))
    }

    fn server_verifier(&self, material: &KeyMaterial) -> Result<Arc<dyn rustls::client::danger::ServerCertVerifier>> {
        if self.trust == Trust::Anybody {
            return Ok(Arc::new(AnyServer { provider: PROVIDER.clone() }));
        }
        let roots = Arc::new(roots_of(&material.trust)?);
        let built = WebPkiServerVerifier::builder_with_provider(roots, PROVIDER.clone()).build();
        let verifier = built.map_err(|error| material.trust.file_error("trust", AUTHORITIES, error))?;
        Ok(if self.checks_host { verifier } else { Arc::new(AnyName { verifier }) })
    }
}

fn own(material: &KeyMaterial) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    Ok((certificates_of(&material.certificate)?, key_of(&material.key)?))
}

/// Creates a self-signed certificate for localhost, like netty's `SelfSignedCertificate`.
fn self_signed() -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    // no client can verify this certificate, so these names only serve local tests
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let certificate = rcgen::generate_simple_self_signed(names).map_err(|e| unusable(&e))?;
    let key = PrivatePkcs8KeyDer::from(certificate.signing_key.serialize_der());
    Ok((vec![certificate.cert.into()], key.into()))
}
