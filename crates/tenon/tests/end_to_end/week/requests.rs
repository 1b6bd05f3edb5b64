//! What do the controllers ask of Kubernetes that disturbs pods? Every eviction is judged at the moment at which it is granted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Method, Request};
use kube::Client;
use kube::client::Body;

use super::watch::Watch;

/// What was asked since the last day began.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) evicted: usize,
    pub(crate) refused: usize,
    pub(crate) requests: usize,
    /// Answers that were no success, by method, kind of path and code.
    pub(crate) failures: BTreeMap<String, usize>,
    /// Pods that were evicted or deleted, and whether by an eviction, oldest first.
    pub(crate) pods: Vec<(String, bool)>,
}

/// The controllers' requests.
#[derive(Clone)]
pub(crate) struct Requests {
    asked: Arc<Mutex<Asked>>,
    judge: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Requests {
    pub(crate) fn judged_by(watch: &Watch) -> Requests {
        Requests { asked: Arc::default(), judge: Arc::new(watch.judge()) }
    }

    pub(crate) fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client whose requests are noted.
    pub(crate) fn through(&self, client: Client) -> Client {
        let requests = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, requests) = (client.clone(), requests.clone());
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            async move {
                let answer = client.send(request).await;
                let code = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
                let evicted = requests.asked().note(&method, &path, code);
                if let Some(pod) = evicted {
                    (requests.judge)(&pod);
                }
                answer
            }
        });
        Client::new(service, "default")
    }
}

impl Asked {
    /// Notes an answer; the pod that it evicts, if it does.
    fn note(&mut self, method: &Method, path: &str, code: u16) -> Option<String> {
        self.requests += 1;
        let words: Vec<&str> = path.trim_matches('/').split('/').collect();
        let is_good = (200..300).contains(&code);
        if !is_good {
            let kind = words.iter().rev().nth(1).unwrap_or(&"");
            *self.failures.entry(format!("{method} {kind} {code}")).or_default() += 1;
        }
        match (method.as_str(), words.as_slice()) {
            ("POST", [.., "pods", _, "eviction"]) if code == 429 => self.refused += 1,
            ("POST", [.., "pods", pod, "eviction"]) if is_good => {
                self.evicted += 1;
                self.pods.push(((*pod).to_owned(), true));
                return Some((*pod).to_owned());
            }
            ("DELETE", [.., "pods", pod]) if is_good => self.pods.push(((*pod).to_owned(), false)),
            _ => {}
        }
        None
    }
}
