//! How the estate reaches out: one HTTP request for a file that somebody wants downloaded and nobody has published.
//!
//! It blocks a thread of its own, because the runtime's clock may be paused and must not run ahead of the network. How long the
//! file then takes is a matter of the estate's clock, in `download`.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use bytes::Bytes;

use crate::download::{Download, Fetched};
use crate::estate::Estate;
use crate::fetch_tls::{Doubt, secure};
use crate::wget::{self, Peer};
use crate::wire::Fetch;

/// More than any image a test downloads.
const LIMIT: u64 = 4 << 30;
const PATIENCE: Duration = Duration::from_secs(60);

/// What the network has to know of an estate.
struct Place {
    ca_pem: Option<String>,
    epoch: u64,
    bytes_per_s: u64,
}

/// Fetches in the background and hands the result to the worker that waits for it.
pub(crate) fn start(estate: Estate, fetch: Fetch) {
    let place = estate.with(|state| Place {
        ca_pem: state.config.download_ca.clone(),
        epoch: state.epoch(),
        bytes_per_s: state.config.pace.link_bytes_per_s.max(1),
    });
    tokio::spawn(async move {
        let wanted = fetch.clone();
        let fetched = tokio::task::spawn_blocking(move || get(&wanted, &place)).await;
        let fetched = fetched.unwrap_or_else(|_| broken(Vec::new()));
        estate.with(|state| state.deliver(&fetch.upid, fetched));
    });
}

/// The connection ended too early.
fn broken(lines: Vec<String>) -> Fetched {
    Fetched::Failed { lines, error: "exit code 4".into() }
}

fn get(fetch: &Fetch, place: &Place) -> Fetched {
    let (host, port) = wget::endpoint(&fetch.url);
    let Some(address) = (host, port).to_socket_addrs().ok().and_then(|mut addresses| addresses.next()) else {
        let line = format!("Resolving {host} ({host})... failed: Name or service not known.");
        return Fetched::Failed { lines: vec![line], error: format!("wget: unable to resolve host address '{host}'") };
    };
    let ip = address.ip().to_string();
    let peer = Peer::new(&fetch.url, &ip);
    let Ok(stream) = dial(address) else {
        return Fetched::failed_as_told(peer.unreachable("Connection refused"));
    };
    let mut lines = peer.hello();
    if !fetch.url.starts_with("https://") {
        return request(&fetch.url, stream, lines, place);
    }
    match secure(&stream, host, (fetch.verify, place.ca_pem.as_deref())) {
        Ok((stream, doubt)) => {
            lines.extend(doubt.into_iter().flat_map(|doubt| doubt.lines(host, false)));
            request(&fetch.url, stream, lines, place)
        }
        Err(Doubt::Untrusted(doubt)) => {
            lines.extend(doubt.lines(host, true));
            Fetched::failed_as_told(lines)
        }
        Err(Doubt::Broken) => {
            lines.push("Unable to establish SSL connection.".into());
            Fetched::Failed { lines, error: "Unable to establish SSL connection.".into() }
        }
    }
}

fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn request(url: &str, stream: impl Read + Write, mut lines: Vec<String>, place: &Place) -> Fetched {
    let Ok(answer) = ask(url, stream) else { return broken(lines) };
    let Some(end) = answer.windows(4).position(|w| w == b"\r\n\r\n") else { return broken(lines) };
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.lines().next().and_then(|line| line.split_once(' ')).map_or("", |(_, status)| status);
    if !status.starts_with("200") {
        lines.extend(wget::refused(status, place.epoch));
        return Fetched::Failed { lines, error: "exit code 8".into() };
    }
    lines.push(wget::status_line(status));
    let data = Bytes::from(answer).slice(end + 4..);
    let length = data.len() as u64;
    Fetched::File(Download { data, length, bytes_per_s: place.bytes_per_s, lines })
}

fn ask(url: &str, mut stream: impl Read + Write) -> io::Result<Vec<u8>> {
    let path = url.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..])).unwrap_or("/");
    let head = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", wget::authority(url));
    // In one piece: a simple server may answer what it has read first.
    stream.write_all(head.as_bytes())?;
    stream.flush()?;
    let mut answer = Vec::new();
    match stream.take(LIMIT).read_to_end(&mut answer) {
        // Servers that close without a farewell have said everything all the same.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(answer),
        other => other.map(|_| answer),
    }
}
