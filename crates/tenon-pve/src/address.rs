//! Where a request goes and how its parameters are written.

use std::fmt;

use form_urlencoded::Serializer;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stands in a path as it is; everything else is encoded. Proxmox takes volume and task names either way.
const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The address of a Proxmox API: `https://host:8006/api2/json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    base: String,
}

impl Endpoint {
    /// An endpoint from the address a user wrote, with or without `/api2/json`.
    pub fn new(url: &str) -> Option<Endpoint> {
        let url = url.trim().trim_end_matches('/');
        let base = url.strip_suffix("/api2/json").unwrap_or(url).trim_end_matches('/');
        let uri: http::Uri = base.parse().ok()?;
        let is_usable = uri.scheme_str() == Some("https") && uri.host().is_some_and(|host| !host.is_empty());
        is_usable.then(|| Endpoint { base: format!("{base}/api2/json") })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

/// One segment of a path.
pub(crate) fn segment(text: impl fmt::Display) -> String {
    utf8_percent_encode(&text.to_string(), &PLAIN).to_string()
}

/// Parameters as a form or a query has them.
pub(crate) fn encode(params: &[(&str, String)]) -> String {
    let mut form = Serializer::new(String::new());
    for (name, value) in params {
        form.append_pair(name, value);
    }
    form.finish()
}

/// Parameters of which some are left out. Proxmox reads an empty value as a value, so what is not wanted is not sent.
#[derive(Debug, Default)]
pub(crate) struct Form(Vec<(&'static str, String)>);

impl Form {
    pub(crate) fn with(mut self, name: &'static str, value: impl fmt::Display) -> Form {
        self.0.push((name, value.to_string()));
        self
    }

    pub(crate) fn with_some(self, name: &'static str, value: Option<impl fmt::Display>) -> Form {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// A boolean, which a form has to give as 0 or 1.
    pub(crate) fn with_flag(self, name: &'static str, value: Option<bool>) -> Form {
        self.with_some(name, value.map(u8::from))
    }

    pub(crate) fn params(&self) -> &[(&'static str, String)] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_leave_out_the_path_of_the_api() {
        for url in
            ["https://pve1:8006", "https://pve1:8006/", "https://pve1:8006/api2/json", " https://pve1:8006/api2/json/ "]
        {
            assert_eq!(Endpoint::new(url).unwrap().base, "https://pve1:8006/api2/json", "{url}");
        }
        for url in ["", "pve1:8006", "http://pve1:8006", "https://", "ftp://pve1"] {
            assert_eq!(Endpoint::new(url), None, "{url}");
        }
    }

    #[test]
    fn a_plus_sign_and_a_blank_survive_the_form() {
        assert_eq!(
            encode(&[("size", "+1G".to_owned()), ("name", "a b&c=é".to_owned())]),
            "size=%2B1G&name=a+b%26c%3D%C3%A9"
        );
        assert_eq!(segment("local:iso/user data.iso"), "local%3Aiso%2Fuser%20data.iso");
    }

    #[test]
    fn what_is_not_wanted_is_not_sent() {
        let form = Form::default().with("a", 1).with_some("b", None::<u8>).with_flag("c", Some(true));
        assert_eq!(encode(form.params()), "a=1&c=1");
    }
}
