//! Whether a server that a file is downloaded from is the one it says it is.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, StreamOwned};

use crate::wget::Untrusted;

/// Why there is no connection.
pub(crate) enum Doubt {
    Untrusted(Untrusted),
    Broken,
}

/// A connection, and what would have been said against its server.
type Secured = (StreamOwned<ClientConnection, TcpStream>, Option<Untrusted>);

/// Shakes hands with a server; without verification whoever it is.
pub(crate) fn secure(stream: &TcpStream, host: &str, (verify, ca): (bool, Option<&str>)) -> Result<Secured, Doubt> {
    let roots = roots(ca);
    let strict = handshake(stream.try_clone().map_err(|_| Doubt::Broken)?, host, strict(roots));
    let doubt = match strict {
        Ok(connection) => return Ok((connection, None)),
        Err(Doubt::Untrusted(doubt)) if !verify => doubt,
        Err(doubt) => return Err(doubt),
    };
    // The server hung up when it was refused.
    let again = stream.peer_addr().and_then(TcpStream::connect).map_err(|_| Doubt::Broken)?;
    let connection = handshake(again, host, lenient())?;
    Ok((connection, Some(doubt)))
}

fn roots(ca: Option<&str>) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_slice_iter(ca.unwrap_or("").as_bytes()).flatten();
    roots.add_parsable_certificates(certificates);
    roots
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// `None` when there is nobody to trust.
fn strict(roots: RootCertStore) -> Option<ClientConfig> {
    if roots.is_empty() {
        return None;
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider()).build().ok()?;
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().ok()?;
    Some(builder.with_webpki_verifier(verifier).with_no_client_auth())
}

fn lenient() -> Option<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().ok()?;
    let anybody = Arc::new(Anybody(provider()));
    Some(builder.dangerous().with_custom_certificate_verifier(anybody).with_no_client_auth())
}

fn handshake(
    mut stream: TcpStream,
    host: &str,
    config: Option<ClientConfig>,
) -> Result<StreamOwned<ClientConnection, TcpStream>, Doubt> {
    let config = config.ok_or(Doubt::Untrusted(Untrusted::Issuer))?;
    let name = ServerName::try_from(host.to_string()).map_err(|_| Doubt::Broken)?;
    let mut connection = ClientConnection::new(Arc::new(config), name).map_err(|_| Doubt::Broken)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(|error| doubt(&error))?;
    }
    Ok(StreamOwned::new(connection, stream))
}

fn doubt(error: &io::Error) -> Doubt {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(reason)) = tls else { return Doubt::Broken };
    Doubt::Untrusted(match reason {
        // An authority of the same name that is another one is unknown, too.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => Untrusted::Issuer,
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Untrusted::Expired,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => Untrusted::Name,
        _ => Untrusted::Otherwise,
    })
}

/// Takes every certificate, as a caller has asked for with `verify-certificates=0`.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
