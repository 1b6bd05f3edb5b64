//! The few HTTP requests the testbed itself makes: is it healthy, and the first objects of a cluster.
//!
//! One request a connection, on loopback, with certificates checked. Tests use a real client; this keeps
//! `cargo xtask` free of one.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::error::{Result, file};
use crate::pki::Identity;

/// A component that does not answer a loopback request in this time is not healthy.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Speaks to one port of a testbed.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    port: u16,
    tls: Arc<ClientConfig>,
}

/// Status code and body of a reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Wire {
    /// HTTPS to a server whose certificate `authority` signed, as the bearer of `identity`. A server of another testbed
    /// that took the port first is thus never mistaken for ours.
    pub(crate) fn secure(port: u16, authority: &Path, identity: &Identity) -> Result<Wire> {
        let invalid = |error: rustls::Error| file("use", &identity.certificate)(io::Error::other(error));
        let unreadable = |path: &Path| file("read", path)(io::Error::other("no PEM in it"));
        let read = |path: &Path| fs::read(path).map_err(file("read", path));
        let mut roots = RootCertStore::empty();
        let authority_der = CertificateDer::from_pem_slice(&read(authority)?).map_err(|_| unreadable(authority))?;
        roots.add(authority_der).map_err(invalid)?;
        let certificate = CertificateDer::from_pem_slice(&read(&identity.certificate)?)
            .map_err(|_| unreadable(&identity.certificate))?;
        let key = PrivateKeyDer::from_pem_slice(&read(&identity.key)?).map_err(|_| unreadable(&identity.key))?;
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(invalid)?
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate], key)
            .map_err(invalid)?;
        Ok(Wire { port, tls: Arc::new(config) })
    }

    /// The same identity at another port.
    pub(crate) fn at(&self, port: u16) -> Wire {
        Wire { port, tls: Arc::clone(&self.tls) }
    }

    /// `GET path`.
    pub(crate) fn get(&self, path: &str) -> io::Result<Reply> {
        self.send("GET", path, "")
    }

    /// `POST path` with a JSON body.
    pub(crate) fn post(&self, path: &str, body: &str) -> io::Result<Reply> {
        self.send("POST", path, body)
    }

    fn send(&self, method: &str, path: &str, body: &str) -> io::Result<Reply> {
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let tcp = TcpStream::connect_timeout(&(Ipv4Addr::LOCALHOST, self.port).into(), TIMEOUT)?;
        tcp.set_read_timeout(Some(TIMEOUT))?;
        tcp.set_write_timeout(Some(TIMEOUT))?;
        let name = ServerName::from(IpAddr::from(Ipv4Addr::LOCALHOST));
        let connection = ClientConnection::new(Arc::clone(&self.tls), name).map_err(io::Error::other)?;
        let raw = exchange(StreamOwned::new(connection, tcp), &request)?;
        parse(&raw).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not an HTTP reply"))
    }
}

/// HTTP/1.0: the server closes after its reply, so the reply is all there is to read.
fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<Vec<u8>> {
    stream.write_all(request.as_bytes())?;
    let mut raw = Vec::new();
    match stream.read_to_end(&mut raw) {
        // Go's server may close the connection without TLS's own farewell; a reply that is short does not parse.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(raw),
        Err(error) => Err(error),
        Ok(_) => Ok(raw),
    }
}

fn parse(raw: &[u8]) -> Option<Reply> {
    let text = String::from_utf8_lossy(raw);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.lines().next()?.split(' ').nth(1)?.parse().ok()?;
    Some(Reply { status, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_has_a_status_and_a_body() {
        let reply = parse(b"HTTP/1.0 201 Created\r\nX: y\r\n\r\n{}").unwrap();
        assert_eq!((reply.status, reply.body.as_str()), (201, "{}"));
    }

    #[test]
    fn a_cut_reply_is_no_reply() {
        assert!(parse(b"HTTP/1.0 200 OK\r\nContent-").is_none());
        assert!(parse(b"").is_none());
    }
}
