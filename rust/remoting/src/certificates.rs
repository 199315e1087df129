//! Creates a certificate authority and a server certificate, for users who have neither.
use crate::error::{Error, Result};
use crate::key_material::unusable;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

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

/// Creates both certificates, valid from `begin` to `end`. `names` are the host names and addresses of the server.
///
/// # Errors
/// [`Error::Malformed`] without a name; [`Error::Io`] for an invalid name, or if the library fails.
pub fn make_certificates(names: &[String], begin: Date, end: Date) -> Result<Certificates> {
    if names.is_empty() {
        return Err(Error::malformed("names of a certificate", "at least one", 0));
    }
    let failed = |error| unusable(&error);
    let (authority_key, server_key) = (KeyPair::generate().map_err(failed)?, KeyPair::generate().map_err(failed)?);
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
