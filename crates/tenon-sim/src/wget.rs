//! What `wget --progress=dot:giga` says: whom it talks to, how far it is, and why it gives up.
//!
//! The words about names, progress and statuses are recorded; those about certificates and full disks are from the sources of
//! GNU Wget with GnuTLS, which is the one Proxmox VE has.

use std::net::IpAddr;

/// What one line of dots stands for: four groups of eight, a mebibyte each.
pub(crate) const ROW_BYTES: u64 = 32 << 20;
const DOT_BYTES: u64 = 1 << 20;
const GROUPS: u64 = 4;
const DOTS: u64 = 8;

/// `host:port` of a URL, as `wget` names it.
pub(crate) fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?']).next().unwrap_or(rest)
}

/// Whom a URL leads to.
pub(crate) struct Peer<'a> {
    host: &'a str,
    port: u16,
    address: &'a str,
}

impl<'a> Peer<'a> {
    /// The server of a URL, which is at this address.
    pub(crate) fn new(url: &'a str, address: &'a str) -> Self {
        let (host, port) = endpoint(url);
        Self { host, port, address }
    }

    /// Name and address as they stand in front of `connected` or `failed`.
    fn named(&self) -> String {
        let Self { host, port, address } = self;
        if host.parse::<IpAddr>().is_ok() {
            return format!("Connecting to {host}:{port}...");
        }
        format!("Connecting to {host} ({host})|{address}|:{port}...")
    }

    fn resolved(&self) -> Option<String> {
        let Self { host, address, .. } = self;
        host.parse::<IpAddr>().is_err().then(|| format!("Resolving {host} ({host})... {address}"))
    }

    /// What is said until the connection stands.
    pub(crate) fn hello(&self) -> Vec<String> {
        self.resolved().into_iter().chain([format!("{} connected.", self.named())]).collect()
    }

    /// What is said when it does not.
    pub(crate) fn unreachable(&self, why: &str) -> Vec<String> {
        self.resolved().into_iter().chain([format!("{} failed: {why}.", self.named())]).collect()
    }
}

/// Host and port of a URL.
pub(crate) fn endpoint(url: &str) -> (&str, u16) {
    let usual = if url.starts_with("https://") { 443 } else { 80 };
    let place = authority(url);
    match place.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().unwrap_or(usual)),
        None => (place, usual),
    }
}

/// Why a certificate is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Untrusted {
    Issuer,
    Expired,
    Name,
    Otherwise,
}

impl Untrusted {
    /// What is said of it; without verification only as a warning.
    pub(crate) fn lines(self, place: &str, verify: bool) -> Vec<String> {
        let host = place.split(':').next().unwrap_or(place);
        let severity = if verify { "ERROR" } else { "WARNING" };
        let bad = format!("{severity}: The certificate of '{host}' is not trusted.");
        match self {
            Self::Issuer => vec![bad, format!("{severity}: The certificate of '{host}' doesn't have a known issuer.")],
            Self::Expired => vec![bad, format!("{severity}: The certificate of '{host}' has expired.")],
            Self::Name => vec![format!("The certificate's owner does not match hostname '{host}'")],
            Self::Otherwise => vec![bad],
        }
    }
}

pub(crate) fn status_line(status: &str) -> String {
    format!("HTTP request sent, awaiting response... {status}")
}

/// What is said of a status that is no success. The empty line at the end hides the reason from whoever reads the last one.
pub(crate) fn refused(status: &str, epoch: u64) -> Vec<String> {
    let (code, phrase) = status.split_once(' ').unwrap_or((status, ""));
    vec![status_line(status), format!("{} ERROR {code}: {phrase}.", timestamp(epoch)), String::new()]
}

pub(crate) fn timestamp(epoch: u64) -> String {
    let seconds = i64::try_from(epoch).unwrap_or(0);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| String::new(), |at| at.strftime("%F %T").to_string())
}

/// How far a file is, and how long it took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) received: u64,
    pub(crate) length: u64,
    /// Seconds since the first byte.
    pub(crate) elapsed_s: f64,
    /// Bytes a second of the last row.
    pub(crate) rate: f64,
}

impl Progress {
    /// The row of dots that ends here.
    pub(crate) fn row(&self) -> String {
        let row = self.received.saturating_sub(1) / ROW_BYTES;
        let dots = (self.received - row * ROW_BYTES) / DOT_BYTES;
        let groups = (0..GROUPS).map(|group| {
            let full = dots.saturating_sub(group * DOTS).min(DOTS);
            let count = usize::try_from(full).unwrap_or(0);
            format!(" {:<8}", ".".repeat(count))
        });
        let groups: String = groups.collect();
        let percent = (u128::from(self.received) * 100).checked_div(self.length.into()).unwrap_or(100);
        let rate = rate(self.rate, ["B", "K", "M", "G"]);
        let end = if self.received >= self.length {
            format!("={}s", decimal(self.elapsed_s))
        } else {
            let left_s = (self.length - self.received) as f64 * self.elapsed_s / self.received.max(1) as f64;
            format!(" {}", eta(left_s.round() as u64))
        };
        format!("{:>6}K{groups}{percent:>3}% {rate:>5}{end}", row * (ROW_BYTES >> 10))
    }

    /// The last line about a file that has come.
    pub(crate) fn saved(&self, path: &str, epoch: u64) -> String {
        let Self { length, elapsed_s, .. } = self;
        let rate = rate(*length as f64 / elapsed_s.max(1e-9), [" B/s", " KB/s", " MB/s", " GB/s"]);
        format!("{} ({rate}) - '{path}' saved [{length}/{length}]", timestamp(epoch))
    }
}

/// Three digits and a unit.
fn rate(bytes_per_s: f64, units: [&str; 4]) -> String {
    let mut value = bytes_per_s;
    let mut unit = units[0];
    for next in &units[1..] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    let digits = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$}{unit}")
}

fn decimal(seconds: f64) -> String {
    match seconds {
        s if s >= 9.95 => format!("{s:.0}"),
        s if s >= 0.95 => format!("{s:.1}"),
        s if s >= 0.095 => format!("{s:.1}"),
        s if s >= 0.0095 => format!("{s:.2}"),
        s if s >= 0.001 => format!("{s:.3}"),
        _ => "0".into(),
    }
}

fn eta(seconds: u64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    match seconds {
        s if s < 100 => format!("{s}s"),
        s if s < 100 * MINUTE => format!("{}m{}s", s / MINUTE, s % MINUTE),
        s if s < 2 * DAY => format!("{}h{}m", s / HOUR, s / MINUTE % 60),
        s => format!("{}d{}h", s / DAY, s / HOUR % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = (1 << 20) as f64;

    #[test]
    fn rows_are_those_of_a_recorded_download() {
        let length = 105_185_280;
        let row = |received: u64, elapsed_s: f64, rate: f64| Progress { received, length, elapsed_s, rate }.row();
        assert_eq!(
            row(ROW_BYTES, 0.03, 1.13 * 1024.0 * MIB),
            "     0K ........ ........ ........ ........ 31% 1.13G 0s"
        );
        assert_eq!(row(2 * ROW_BYTES, 0.06, 936.0 * MIB), " 32768K ........ ........ ........ ........ 63%  936M 0s");
        assert_eq!(row(length, 0.09, 877.0 * MIB), " 98304K ....                               100%  877M=0.09s");
        let small = Progress { received: 1200, length: 1200, elapsed_s: 0.0, rate: 205.0 * MIB };
        assert_eq!(small.row(), "     0K                                    100%  205M=0s");
    }

    #[test]
    fn a_slow_link_shows_its_rate_and_the_time_that_is_left() {
        let slow = Progress { received: ROW_BYTES, length: 10 * ROW_BYTES, elapsed_s: 320.0, rate: 0.1 * MIB };
        assert_eq!(slow.row(), "     0K ........ ........ ........ ........ 10%  102K 48m0s");
        assert_eq!((eta(99), eta(7200), eta(180_000)), ("99s".into(), "2h0m".into(), "2d2h".into()));
    }

    #[test]
    fn an_address_is_connected_to_without_a_name() {
        let peer = Peer::new("http://127.0.0.1:9799/x", "127.0.0.1");
        assert_eq!(peer.hello(), ["Connecting to 127.0.0.1:9799... connected."]);
        let peer = Peer::new("https://images.example.com/x", "192.0.2.80");
        assert_eq!(
            peer.unreachable("Connection refused"),
            [
                "Resolving images.example.com (images.example.com)... 192.0.2.80",
                "Connecting to images.example.com (images.example.com)|192.0.2.80|:443... failed: Connection refused."
            ]
        );
    }
}
