//! TLS of servers and clients: modes, trust and client certificates.
//!
//! Source: `TlsSystemConfig`, `TlsHelper.buildSslContext`, `TlsMode`, `InsecureTrustManagerFactory`, `TlsHelper`.
use crate::error::Result;
use crate::key_material::{KeyMaterial, KeyPair, certificates_of, key_of, roots_of, unusable};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
};
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    None,
    Optional,
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
    /// Certificate of the server. With `None` a self-signed certificate is created, as with `tls.test.mode.enable`. No
    /// client can verify that certificate.
    pub key_pair: Option<KeyPair>,
    pub client_auth: ClientAuth,
    pub trust: Trust,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTls {
    /// Certificate that the client shows to servers that ask for a client certificate.
    pub key_pair: Option<KeyPair>,
    pub trust: Trust,
    /// Whether the server's certificate must match the host name.
    pub checks_host: bool,
}

impl ServerTls {
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

type Signed = Result<HandshakeSignatureValid, Error>;

// Verifiers that accept certificates without a trusted authority, if configured so. They still verify that the peer has the
// key of its certificate. Source: netty's `InsecureTrustManagerFactory`, as `TlsHelper` uses it.

#[derive(Debug)]
pub struct AnyServer {
    pub provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
pub struct AnyClient {
    pub provider: Arc<CryptoProvider>,
    pub is_mandatory: bool,
}

/// Accepts a valid certificate even if it was made for another host name, as RocketMQ's clients do.
#[derive(Debug)]
pub struct AnyName {
    pub verifier: Arc<WebPkiServerVerifier>,
}

/// Checks signatures with the algorithms of the provider.
macro_rules! signatures_of_provider {
    () => {
        fn verify_tls12_signature(&self, m: &[u8], cert: &CertificateDer<'_>, dss: &DigitallySignedStruct) -> Signed {
            verify_tls12_signature(m, cert, dss, &self.provider.signature_verification_algorithms)
        }

        fn verify_tls13_signature(&self, m: &[u8], cert: &CertificateDer<'_>, dss: &DigitallySignedStruct) -> Signed {
            verify_tls13_signature(m, cert, dss, &self.provider.signature_verification_algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.provider.signature_verification_algorithms.supported_schemes()
        }
    };
}

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    signatures_of_provider!();
}

impl ClientCertVerifier for AnyClient {
    // without hints a client shows any certificate that it has
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        self.is_mandatory
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    signatures_of_provider!();
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // the host name is checked last, so everything else was valid
        match self.verifier.verify_server_cert(certificate, between, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(&self, m: &[u8], cert: &CertificateDer<'_>, dss: &DigitallySignedStruct) -> Signed {
        self.verifier.verify_tls12_signature(m, cert, dss)
    }

    fn verify_tls13_signature(&self, m: &[u8], cert: &CertificateDer<'_>, dss: &DigitallySignedStruct) -> Signed {
        self.verifier.verify_tls13_signature(m, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
