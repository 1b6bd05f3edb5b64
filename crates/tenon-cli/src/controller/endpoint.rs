//! Is this where new nodes can find the API server? `https://host` or `https://host:port`, and nothing more.

use std::ffi::OsStr;
use std::net::Ipv6Addr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command};

/// Reads the address. Clap's own message would repeat what was given, and an address may hold a password by mistake.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndpointParser;

impl TypedValueParser for EndpointParser {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        // Nothing at all is what charts write for "unset".
        let text = value.to_str().filter(|text| text.is_empty() || is_endpoint(text));
        text.map(str::to_owned).ok_or_else(|| {
            let flag = arg.map(ToString::to_string).unwrap_or_default();
            let given = value.to_string_lossy();
            let shown = if given.contains('@') { "an address with a user name".into() } else { format!("`{given}`") };
            let said = format!(
                "invalid value {shown} for '{flag}': give https://host or https://host:port, without user name and path\n"
            );
            clap::Error::raw(ErrorKind::ValueValidation, said).with_cmd(command)
        })
    }
}

fn is_endpoint(text: &str) -> bool {
    let Some(place) = text.strip_prefix("https://") else { return false };
    let (is_host, port) = if let Some((host, port)) = place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        (host.parse::<Ipv6Addr>().is_ok(), port)
    } else {
        let (host, port) = place.split_at(place.find(':').unwrap_or(place.len()));
        (!host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte)), port)
    };
    let is_port =
        |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse().is_ok_and(|port: u16| port > 0);
    is_host && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_and_perhaps_a_port() {
        for good in ["https://api", "https://api.example:6443", "https://10.0.0.1:443", "https://[fd00::1]:6443"] {
            assert!(is_endpoint(good), "{good}");
        }
        for bad in [
            "api:6443",
            "http://api",
            "https://",
            "https://:6443",
            "https://api:",
            "https://api:0",
            "https://api:+1",
            "https://api:65536",
            "https://api/",
            "https://api:6443/path",
            "https://api?x",
            "https://fd00::1",
            "https://[fd00::1]x",
            "https://user:s3cret@api",
        ] {
            assert!(!is_endpoint(bad), "{bad}");
        }
    }

    #[test]
    fn a_password_given_by_mistake_is_not_repeated() {
        let command = Command::new("x").arg(Arg::new("at").long("at").value_parser(EndpointParser));
        let said = |at: &str| command.clone().try_get_matches_from(["x", "--at", at]).unwrap_err().to_string();
        assert!(!said("https://user:s3cret@api").contains("s3cret"));
        assert!(said("http://api").contains("invalid value `http://api` for '--at <at>': give https://host"));
    }
}
