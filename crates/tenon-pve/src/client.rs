//! How one request is made: address, parameters, credentials, patience, and another endpoint if the first is not there.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use form_urlencoded::Serializer;
use http::{Method, Request, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::credentials::Token;
use crate::error::{Cause, Doubtful, Error, Result};
use crate::reply;
use crate::transport::{Transport, TransportError};

/// Every call answers in well under a second, but a refused token takes three, a lock ten, an unreachable host
/// fourteen.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

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

/// Speaks to one Proxmox cluster. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    endpoints: Vec<Endpoint>,
    transport: Transport,
    token: Token,
}

/// Parameters of a call, in order.
pub(crate) type Params<'a> = &'a [(&'a str, String)];

/// One request, before it has an address.
pub(crate) struct Call<'a> {
    /// What it is meant to do, as it stands behind "cannot".
    pub(crate) action: String,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) params: Params<'a>,
}

impl Client {
    /// A client of the cluster whose hosts answer at these endpoints; the first that can be reached is used.
    pub fn new(endpoints: Vec<Endpoint>, transport: Transport, token: Token) -> Client {
        Client { inner: Arc::new(Inner { endpoints, transport, token }) }
    }

    /// Reads; a read whose answer was lost is asked once more, which harms nobody.
    pub(crate) async fn get(&self, action: String, path: String) -> Result<Value> {
        let call = Call { action, method: Method::GET, path, params: &[] };
        match self.call(&call).await {
            Err(error) if matches!(error.cause(), Cause::MaybeDone(Doubtful::Lost(TransportError::Broken(_)))) => {
                self.call(&call).await
            }
            outcome => outcome,
        }
    }

    /// Makes one call. Only what was certainly not sent goes to the next endpoint.
    pub(crate) async fn call(&self, call: &Call<'_>) -> Result<Value> {
        let query = encode(call.params);
        let in_body = call.method == Method::POST || call.method == Method::PUT;
        let (path, body) = match (query.is_empty(), in_body) {
            (false, false) => (format!("{}?{query}", call.path), Bytes::new()),
            (_, true) => (call.path.clone(), Bytes::from(query)),
            (true, false) => (call.path.clone(), Bytes::new()),
        };
        let form = in_body.then_some("application/x-www-form-urlencoded");
        self.send(call, &path, (form, body)).await
    }

    /// Sends a body of any type, as [`Client::call`] does with parameters.
    pub(crate) async fn send(&self, call: &Call<'_>, path: &str, body: (Option<&str>, Bytes)) -> Result<Value> {
        let mut last = None;
        for endpoint in &self.inner.endpoints {
            let request = self.request(endpoint, call, path, &body)?;
            match self.inner.transport.send(request, ANSWER_WITHIN).await {
                Ok(reply) => return reply::read(&reply).map_err(|cause| Error::new(&call.action, cause)),
                // What was kept back here is kept back from every endpoint.
                Err(error @ TransportError::Withheld(_)) => {
                    return Err(Error::new(&call.action, Cause::NotSent(error)));
                }
                Err(error) if error.is_not_sent() => last = Some(error),
                Err(error) => return Err(Error::new(&call.action, Cause::MaybeDone(Doubtful::Lost(error)))),
            }
        }
        let none = || TransportError::Connect("no endpoint is configured".into());
        Err(Error::new(&call.action, Cause::NotSent(last.unwrap_or_else(none))))
    }

    fn request(
        &self,
        endpoint: &Endpoint,
        call: &Call<'_>,
        path: &str,
        body: &(Option<&str>, Bytes),
    ) -> Result<Request<Bytes>> {
        let unsendable = |error: &dyn std::fmt::Display| {
            Error::new(&call.action, Cause::NotSent(TransportError::Connect(error.to_string().into())))
        };
        let token = self.inner.token.header().map_err(|error| unsendable(&error))?;
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(format!("{}{path}", endpoint.base))
            .header(header::AUTHORIZATION, token)
            .header(header::USER_AGENT, concat!("tenon/", env!("CARGO_PKG_VERSION")));
        let (content_type, content) = body;
        if let Some(content_type) = content_type {
            request = request.header(header::CONTENT_TYPE, *content_type);
        }
        // Proxmox refuses chunked bodies, so the length is always said; a GET or DELETE must have none.
        if content_type.is_some() {
            request = request.header(header::CONTENT_LENGTH, content.len());
        }
        request.body(content.clone()).map_err(|error| unsendable(&error))
    }
}

/// One segment of a path.
pub(crate) fn segment(text: impl std::fmt::Display) -> String {
    utf8_percent_encode(&text.to_string(), &PLAIN).to_string()
}

fn encode(params: Params<'_>) -> String {
    let mut form = Serializer::new(String::new());
    for (name, value) in params {
        form.append_pair(name, value);
    }
    form.finish()
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
}
