//! How the estate reaches out: one plain HTTP request for a file that somebody wants downloaded.
//!
//! Only `http://`: what a test or a demo serves locally. It blocks a thread of its own, because the runtime's clock may
//! be paused and must not run ahead of the network.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use bytes::Bytes;

use crate::download::{Fetched, authority};
use crate::estate::Estate;
use crate::wire::Fetch;

/// More than any image a test downloads.
const LIMIT: u64 = 4 << 30;
const PATIENCE: Duration = Duration::from_secs(60);

/// Fetches in the background and hands the result to the worker that waits for it.
pub(crate) fn start(estate: Estate, fetch: Fetch) {
    tokio::spawn(async move {
        let url = fetch.url.clone();
        let fetched = tokio::task::spawn_blocking(move || get(&url)).await;
        let fetched = fetched.unwrap_or_else(|_| failed(Vec::new(), "exit code 4"));
        estate.with(|state| state.deliver(&fetch.upid, fetched));
    });
}

fn failed(lines: Vec<String>, error: impl Into<String>) -> Fetched {
    Fetched::Failed { lines, error: error.into() }
}

fn get(url: &str) -> Fetched {
    let place = authority(url);
    if !url.starts_with("http://") {
        return failed(Vec::new(), format!("{place}: only http:// can be fetched here"));
    }
    let host = place.split(':').next().unwrap_or(place);
    let dial = if place.contains(':') { place.to_string() } else { format!("{place}:80") };
    let Ok(mut addresses) = dial.to_socket_addrs() else {
        let line = format!("Resolving {host} ({host})... failed: Name or service not known.");
        return failed(vec![line], format!("wget: unable to resolve host address '{host}'"));
    };
    let stream = addresses.next().and_then(|address| TcpStream::connect_timeout(&address, PATIENCE).ok());
    let Some(stream) = stream else {
        return failed(Vec::new(), format!("Connecting to {dial}... failed: Connection refused."));
    };
    let connected = format!("Connecting to {dial}... connected.");
    request(url, stream).unwrap_or_else(|_| failed(vec![connected], "exit code 4"))
}

fn request(url: &str, mut stream: TcpStream) -> io::Result<Fetched> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let path = url.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..])).unwrap_or("/");
    // In one piece: a simple server may answer what it has read first.
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", authority(url)).as_bytes())?;
    let mut answer = Vec::new();
    stream.take(LIMIT).read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").ok_or(io::ErrorKind::InvalidData)?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.lines().next().and_then(|line| line.split_once(' ')).map_or("", |(_, status)| status);
    if status.starts_with("200") {
        return Ok(Fetched::File(Bytes::from(answer).slice(end + 4..)));
    }
    let (code, phrase) = status.split_once(' ').unwrap_or((status, ""));
    Ok(failed(vec![format!("ERROR {code}: {phrase}.")], "exit code 8"))
}
