//! Does the program find names? It is static and alone in its image, so nothing of a distribution helps it: a name server that knows one
//! name, and the port that this name leads to.

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};

/// The name that only our name server knows.
const NAME: &str = "pve.tenon.test";

/// A question that is not answered by then was the last one.
const SILENCE: Duration = Duration::from_secs(2);

/// The type of a question for an IPv4 address.
const A: [u8; 2] = [0, 1];

/// Runs `tenon regions` in the container with a cloud config whose URL has a name, and looks whether it connected to where the name leads.
pub(super) fn is_asked(root: &Path, container: impl Fn() -> Command) -> anyhow::Result<()> {
    // Every process has loopback addresses that nobody else uses; the port is that of DNS, for a resolver asks no other.
    let [.., high, low] = std::process::id().to_be_bytes();
    let address = Ipv4Addr::new(127, 77, high, low.clamp(1, 254));
    let server = UdpSocket::bind((address, 53)).with_context(|| format!("cannot be a name server on {address}"))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let url = format!("https://{NAME}:{}/api2/json", listener.local_addr()?.port());
    fs::create_dir_all(root.join("etc"))?;
    fs::write(root.join("etc/resolv.conf"), format!("nameserver {address}\n"))?;
    fs::write(
        root.join("cloud.yaml"),
        format!("clusters:\n- region: lab\n  url: {url}\n  insecure: true\n  token_id: a@pve!b\n  token_secret: c\n"),
    )?;
    let mut child = container()
        .args(["regions", "--cloud-config", "/cloud.yaml"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    server.set_read_timeout(Some(SILENCE))?;
    let mut connected = false;
    let mut asked = Vec::new();
    while !connected {
        asked.extend(answer(&server)?);
        connected = match listener.accept() {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => return Err(error.into()),
        };
        if !connected && child.try_wait()?.is_some() {
            break;
        }
    }
    // What it says of a server that hangs up is not looked at.
    drop(listener);
    child.kill()?;
    child.wait()?;
    ensure!(connected, "the program in the image did not connect to {NAME}; it asked the name server for {asked:?}");
    Ok(())
}

/// Answers one question, if there is one: with this computer for our name, and with nothing for another name or type.
fn answer(server: &UdpSocket) -> anyhow::Result<Option<String>> {
    let mut packet = [0; 512];
    let (length, from) = match server.recv_from(&mut packet) {
        Ok(received) => received,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let (name, reply) = reply(packet.get(..length).unwrap_or_default()).context("no question of DNS")?;
    server.send_to(&reply, from)?;
    Ok(Some(name))
}

/// The name that a packet asks for, and the reply.
fn reply(packet: &[u8]) -> Option<(String, Vec<u8>)> {
    let mut labels = Vec::new();
    let mut at = 12;
    while let Some(length) = packet.get(at).map(|length| usize::from(*length)).filter(|length| *length > 0) {
        labels.push(String::from_utf8_lossy(packet.get(at + 1..at + 1 + length)?).into_owned());
        at += 1 + length;
    }
    let (name, question) = (labels.join("."), packet.get(12..at + 5)?);
    let is_ours = name == NAME && packet.get(at + 1..at + 3)? == A;
    // The id, a reply to a recursive question, one question, so many answers; then the question itself.
    let header = [packet.get(..2)?, &[0x81, 0x80, 0, 1, 0, u8::from(is_ours), 0, 0, 0, 0]].concat();
    // The name of the question, type A, class IN, five seconds, four bytes.
    let record = [&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4], &Ipv4Addr::LOCALHOST.octets()[..]].concat();
    Some((name, [header.as_slice(), question, if is_ours { &record } else { &[] }].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question for the type of an address.
    fn question(name: &str, of_type: u8) -> Vec<u8> {
        let labels = name.split('.').flat_map(|label| {
            let length = u8::try_from(label.len()).unwrap();
            std::iter::once(length).chain(label.bytes())
        });
        let header = [7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        header.into_iter().chain(labels).chain([0, 0, of_type, 0, 1]).collect()
    }

    #[test]
    fn only_the_address_of_our_name_is_answered() {
        let (name, ours) = reply(&question(NAME, 1)).unwrap();
        assert_eq!((name.as_str(), ours[..2].to_vec(), ours[7]), (NAME, vec![7, 9], 1));
        assert!(ours.ends_with(&[127, 0, 0, 1]));
        for other in [question(NAME, 28), question("example.com", 1)] {
            let (_, nothing) = reply(&other).unwrap();
            assert_eq!((nothing[7], nothing.len()), (0, other.len()));
        }
        assert!(reply(&[0; 5]).is_none());
    }
}
