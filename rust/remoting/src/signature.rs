//! Signs requests with an account: ACL 1.0.
//!
//! The signature covers the values of the header's fields, concatenated without their names, and the body. The
//! request code and the time are not signed. So an attacker who can read the connection can send a request again.
//! Only TLS prevents that.
//!
//! Source: `AclClientRPCHook`, `AclSigner`, `AclUtils.combineRequestContent`, `SessionCredentials`,
//! `AclClientRPCHook.doBeforeRequest`, `AclUtils.combineRequestContent`, `AclSigner.calSignature`.
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::hmac::{Context, HMAC_SHA1_FOR_LEGACY_USE_ONLY, Key};
use std::fmt;

const ACCESS_KEY: &str = "AccessKey";
const SECURITY_TOKEN: &str = "SecurityToken";
const SIGNATURE: &str = "Signature";

/// An account of the broker's access control.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub access_key: String,
    pub secret_key: String,
    /// Temporary token. If it is set, requests contain it and the signature covers it.
    pub security_token: Option<String>,
}

impl Credentials {
    /// Returns the fields to add to a request, which are the account and the signature. The signature covers all fields
    /// and the body. If another field is added later, the signature is invalid.
    pub fn sign(&self, fields: &[(&str, &str)], body: &[u8]) -> Vec<(&'static str, String)> {
        let mut added = vec![(ACCESS_KEY, self.access_key.clone())];
        added.extend(self.security_token.clone().map(|token| (SECURITY_TOKEN, token)));
        // a retried request contains the fields of the last signature, which must not be signed
        let own = fields.iter().copied().filter(|(name, _)| !added.iter().any(|(other, _)| other == name));
        let all: Vec<_> = own.chain(added.iter().map(|(name, value)| (*name, value.as_str()))).collect();
        added.push((SIGNATURE, signature_of(&all, body, self.secret_key.as_bytes(), SIGNATURE)));
        added
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

/// Returns the signature of a request. The field `Signature` and the field named `without` are not signed.
pub fn signature_of(fields: &[(&str, &str)], body: &[u8], secret_key: &[u8], without: &str) -> String {
    let mut signed: Vec<_> = fields.iter().filter(|(name, _)| *name != SIGNATURE && *name != without).collect();
    // Java's TreeMap sorts by UTF-16 units, which differs from the order of code points above U+FFFF
    signed.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
    // SHA-1 is weak, but the protocol has no other algorithm
    let mut content = Context::with_key(&Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret_key));
    signed.iter().for_each(|(_, value)| content.update(value.as_bytes()));
    content.update(body);
    BASE64_STANDARD.encode(content.sign())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(token: Option<&str>) -> Credentials {
        let (access_key, secret_key) = ("RocketMQ".to_owned(), "12345678".to_owned());
        Credentials { access_key, secret_key, security_token: token.map(str::to_owned) }
    }

    #[test]
    fn the_signature_is_that_of_rocketmq() {
        let signed = credentials(None).sign(&[], b"{}");
        // recorded from the Java client
        assert_eq!(signed, [(ACCESS_KEY, "RocketMQ".into()), (SIGNATURE, "pq0tPL2lAz7bhIfEGHu4hhut1Yw=".into())]);
    }

    #[test]
    fn fields_are_signed_in_the_order_of_javas_strings_and_none_that_is_old() {
        let fields = [("b", "2"), ("a", "é"), ("\u{10000}", "x"), ("\u{ffff}", "y")];
        let signed = credentials(Some("token")).sign(&fields, b"body");
        let token = (SECURITY_TOKEN, "token".to_owned());
        let expected =
            |signature: &str| [(ACCESS_KEY, "RocketMQ".into()), token.clone(), (SIGNATURE, signature.into())];
        assert_eq!(signed, expected("ULsstAgyqk5E6uDIwxNhVACIlFw="));
        let sent_again = [("b", "2"), ("a", "é"), (SIGNATURE, "old"), (ACCESS_KEY, "other"), (SECURITY_TOKEN, "t")];
        let signed = credentials(Some("token")).sign(&sent_again, b"body");
        assert_eq!(signed, expected("m7eUuTMPHDdenzF08djYjKiF490="));
    }

    #[test]
    fn a_field_may_be_left_out() {
        let fields = [("a", "1"), ("_UNIQUE_KEY_QUERY", "true"), (SIGNATURE, "x")];
        let of = |without| signature_of(&fields, b"", b"k", without);
        assert_eq!(of("_UNIQUE_KEY_QUERY"), "KgYW2YY/L9H5rw/Rktu6v4o7ccM=");
        assert_eq!(of(SIGNATURE), "cbzA4NuYFOTHDYNky+AS9Kdt7BA=");
    }

    #[test]
    fn secrets_are_not_shown() {
        let shown = format!("{:?}", credentials(Some("a token")));
        assert!(shown.contains("RocketMQ") && !shown.contains("1234") && !shown.contains("token\""));
    }
}
