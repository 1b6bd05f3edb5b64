//! Whom we believe to be Proxmox.
//!
//! A fresh Proxmox signs its own certificate, so people need more than the system's authorities: the cluster's own
//! authority as a file, or the fingerprint the web interface shows. Believing anybody is possible and must be asked for.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256};

/// Whose certificates are good.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Trust {
    /// Signed by an authority this system trusts.
    #[default]
    System,
    /// Signed by one of these authorities, in PEM.
    Authority(Vec<u8>),
    /// Exactly this certificate, whatever it says of itself.
    Pinned(Fingerprint),
    /// Anybody's. Whoever is on the way can read and change everything.
    Anybody,
}

/// The SHA-256 of a certificate, as the Proxmox web interface shows it. Colons are optional.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    fn of(certificate: &[u8]) -> Fingerprint {
        Fingerprint(Sha256::digest(certificate).into())
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Fingerprint, FingerprintError> {
        let digits: Vec<u32> =
            text.chars().filter(|c| *c != ':').map(|c| c.to_digit(16)).collect::<Option<_>>().unwrap_or_default();
        let bytes: Vec<u8> = digits
            .chunks(2)
            .filter_map(|pair| u8::try_from(pair.iter().fold(0, |sum, digit| sum * 16 + digit)).ok())
            .collect();
        let is_whole = digits.len() == 64;
        let bytes = <[u8; 32]>::try_from(bytes).ok().filter(|_| is_whole);
        bytes.map(Fingerprint).ok_or_else(|| FingerprintError { text: text.to_owned() })
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> = self.0.iter().map(|byte| format!("{byte:02X}")).collect();
        f.write_str(&pairs.join(":"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is no [`Fingerprint`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a SHA-256 fingerprint: 64 hexadecimal digits, with or without colons")]
pub struct FingerprintError {
    text: String,
}

/// Why a [`Trust`] cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The authority's file has no certificate in it.
    #[error("the CA file contains no PEM certificate")]
    NoCertificate,
    /// A certificate or setting was refused by the TLS library.
    #[error("cannot set up TLS")]
    Library(#[from] rustls::Error),
}

impl Trust {
    /// TLS settings that believe just these.
    pub(crate) fn client_config(&self) -> Result<ClientConfig, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
        let verifier = match self {
            Trust::System => {
                use hyper_rustls::ConfigBuilderExt;
                return Ok(builder.try_with_platform_verifier()?.with_no_client_auth());
            }
            Trust::Authority(pem) => {
                let roots = authorities(pem)?;
                return Ok(builder.with_root_certificates(roots).with_no_client_auth());
            }
            Trust::Pinned(fingerprint) => Verifier { pinned: Some(*fingerprint), provider },
            Trust::Anybody => Verifier { pinned: None, provider },
        };
        Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
    }
}

fn authorities(pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(|_| TlsError::NoCertificate)?)?;
    }
    if roots.is_empty() { Err(TlsError::NoCertificate) } else { Ok(roots) }
}

/// Believes the pinned certificate, or any. That the server holds the certificate's key is always checked.
#[derive(Debug)]
struct Verifier {
    pinned: Option<Fingerprint>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let shown = Fingerprint::of(certificate);
        match self.pinned {
            Some(pinned) if pinned != shown => Err(rustls::Error::General(format!(
                "the server certificate has fingerprint {shown}, not the pinned one; if Proxmox has a new certificate, pin this fingerprint"
            ))),
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_reads_with_and_without_colons() {
        let print = Fingerprint::of(b"certificate");
        let with = print.to_string();
        assert_eq!(with.parse(), Ok(print));
        assert_eq!(with.replace(':', "").to_lowercase().parse(), Ok(print));
        for bad in ["", "AB", &with[..94], &with.replace(['A', '0'], "G"), &format!("{with}:00")] {
            assert!(bad.parse::<Fingerprint>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_ca_file_without_a_certificate_is_refused() {
        let config = Trust::Authority(b"not pem".to_vec()).client_config();
        assert!(matches!(config, Err(TlsError::NoCertificate)));
    }
}
