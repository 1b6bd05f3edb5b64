//! A stand-in for a Proxmox cluster that lets people in: tickets, several endpoints, connections that fail.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use tenon_pve::{Client, Credentials, Endpoint, Transport, Tuning};

use crate::recordings::reply;

pub(crate) const USER: &str = "root@pam";
pub(crate) const PASSWORD: &str = "corr3ct h0rse&";
pub(crate) const TOKEN_ID: &str = "root@pam!test";
pub(crate) const TOKEN_SECRET: &str = "11112222-secret-of-the-token";

/// What becomes of requests at one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// They are answered.
    Open,
    /// No connection is made.
    Closed,
    /// The connection breaks once the request is through.
    Breaks,
    /// No answer ever comes.
    Silent,
    /// It takes this long.
    Slow(Duration),
    /// This is answered: status, reason phrase, body.
    Says(u16, String, String),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("connection refused")]
    Refused,
    #[error("reset: {0}")]
    Reset(String),
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) ways: BTreeMap<String, Way>,
    /// Requests by endpoint, as method and path.
    pub(crate) asked: Vec<(String, String)>,
    pub(crate) logins: u32,
    /// The ticket that is good, by its number.
    pub(crate) good: u32,
    /// Whether every ticket is refused.
    pub(crate) refuses_all: bool,
    /// What the login answers instead of a ticket.
    pub(crate) instead: Option<(u16, String, String)>,
    pub(crate) in_flight: BTreeMap<String, usize>,
    pub(crate) most: BTreeMap<String, usize>,
}

/// The cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct Door {
    pub(crate) state: Arc<Mutex<State>>,
}

impl Door {
    pub(crate) fn set(&self, endpoint: &str, way: Way) {
        self.state.lock().unwrap().ways.insert(endpoint.to_owned(), way);
    }

    pub(crate) fn asked(&self) -> Vec<(String, String)> {
        self.state.lock().unwrap().asked.clone()
    }

    /// How often an endpoint was asked.
    pub(crate) fn count(&self, endpoint: &str) -> usize {
        self.asked().iter().filter(|(at, _)| at == endpoint).count()
    }

    pub(crate) fn client(&self, endpoints: &[&str], credentials: impl Into<Credentials>, tuning: Tuning) -> Client {
        let endpoints = endpoints.iter().map(|name| Endpoint::new(&format!("https://{name}:8006")).unwrap()).collect();
        Client::tuned(endpoints, self.transport(), credentials, tuning)
    }

    pub(crate) fn transport(&self) -> Transport {
        let this = self.clone();
        let service = tower::service_fn(move |request: Request<Full<Bytes>>| this.clone().answer(request));
        Transport::over(service, |trouble| matches!(trouble, Trouble::Refused))
    }

    async fn answer(self, request: Request<Full<Bytes>>) -> Result<Response<Full<Bytes>>, Trouble> {
        let endpoint = request.uri().host().unwrap().to_owned();
        let path = request.uri().path().strip_prefix("/api2/json").unwrap().to_owned();
        let places = places(&path);
        let way = {
            let mut state = self.state.lock().unwrap();
            state.asked.push((endpoint.clone(), format!("{} {path}", request.method())));
            for place in &places {
                let now = state.in_flight.entry(place.clone()).or_default();
                *now += 1;
                let now = *now;
                let most = state.most.entry(place.clone()).or_default();
                *most = now.max(*most);
            }
            state.ways.get(&endpoint).cloned().unwrap_or(Way::Open)
        };
        let outcome = self.go(way, request).await;
        let mut state = self.state.lock().unwrap();
        for place in places {
            *state.in_flight.get_mut(&place).unwrap() -= 1;
        }
        outcome
    }

    async fn go(&self, way: Way, request: Request<Full<Bytes>>) -> Result<Response<Full<Bytes>>, Trouble> {
        let secret = request.headers().get("authorization").map_or("", |value| value.to_str().unwrap()).to_owned();
        match way {
            Way::Open => Ok(self.serve(request).await.map(Full::new)),
            Way::Closed => Err(Trouble::Refused),
            // Libraries may well repeat what they were handed.
            Way::Breaks => Err(Trouble::Reset(secret)),
            Way::Silent => std::future::pending().await,
            Way::Slow(pause) => {
                tokio::time::sleep(pause).await;
                Ok(self.serve(request).await.map(Full::new))
            }
            Way::Says(status, reason, body) => Ok(reply(status, &reason, body).map(Full::new)),
        }
    }

    async fn serve(&self, request: Request<Full<Bytes>>) -> Response<Bytes> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let mut state = self.state.lock().unwrap();
        if head.uri.path().ends_with("/access/ticket") {
            return state.log_in(&head, &body);
        }
        let header = |name: &str| head.headers.get(name).map_or("", |value| value.to_str().unwrap());
        let ticket = format!("PVEAuthCookie=PVE%3A{}%3A%3Aticket-{}", USER.replace('@', "%40"), state.good);
        let is_let_in = match header("authorization") {
            "" => header("cookie") == ticket && !state.refuses_all,
            token => token == format!("PVEAPIToken={TOKEN_ID}={TOKEN_SECRET}"),
        };
        let is_ticket = header("authorization").is_empty();
        if !is_let_in {
            return reply(401, "Authentication failed!", "");
        }
        if is_ticket && head.method != Method::GET && header("csrfpreventiontoken") != format!("csrf-{}", state.good) {
            return reply(401, "Permission denied - invalid csrf token", "");
        }
        reply(200, "OK", r#"{"data":{"version":"9.2.11"}}"#)
    }
}

impl State {
    fn log_in(&mut self, head: &http::request::Parts, body: &[u8]) -> Response<Bytes> {
        assert!(head.headers.get("cookie").is_none() && head.headers.get("authorization").is_none());
        self.logins += 1;
        if let Some((status, reason, body)) = &self.instead {
            return reply(*status, reason, body.clone());
        }
        let params: BTreeMap<_, _> = form_urlencoded::parse(body).into_owned().collect();
        if params["username"] != USER || params["password"] != PASSWORD {
            return reply(401, "authentication failure", r#"{"data":null,"message":"authentication failure\n"}"#);
        }
        self.good += 1;
        let ticket = format!("PVE:{USER}::ticket-{}", self.good);
        let data = serde_json::json!({ "data": {
            "ticket": ticket, "CSRFPreventionToken": format!("csrf-{}", self.good), "username": USER,
        } });
        reply(200, "OK", data.to_string())
    }
}

/// The places a request is counted at.
fn places(path: &str) -> Vec<String> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let mut places = vec!["region".to_owned()];
    if let ["nodes", host, rest @ ..] = parts.as_slice() {
        places.push(format!("host {host}"));
        if let ["storage", storage, ..] = rest {
            places.push(format!("storage {storage}"));
        }
    }
    places
}
