//! How many requests go to the Kubernetes API, how are they answered, and how long does that take? By kind of object, never by
//! name.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use tokio::time::Instant;
use tower::{Layer, Service};

use super::catalogue::karpenter;
use super::exposition::Exposition;
use super::families::{Series, labels};

labels! {
    /// How requests were answered.
    Answered { code: String, method: String }
    /// What was asked of which kind.
    Asked { verb: String, group: String, version: String, kind: String, subresource: String }
}

/// Counts requests: a layer around a Kubernetes client. Cheap to clone; clones count together.
#[derive(Debug, Clone)]
pub struct KubeMeter {
    counted: Arc<Counted>,
}

#[derive(Debug)]
struct Counted {
    answers: Series<Answered>,
    durations: Series<Asked>,
}

impl Default for KubeMeter {
    fn default() -> KubeMeter {
        let (answers, durations) = (Series::new(&karpenter::KUBE_REQUESTS), Series::new(&karpenter::KUBE_DURATION));
        KubeMeter { counted: Arc::new(Counted { answers, durations }) }
    }
}

impl KubeMeter {
    pub(super) fn show(&self, page: &mut Exposition<'_>) {
        self.counted.answers.family.show(page);
        self.counted.durations.family.show(page);
    }
}

impl<S> Layer<S> for KubeMeter {
    type Service = Metered<S>;

    fn layer(&self, inner: S) -> Metered<S> {
        Metered { inner, counted: self.counted.clone() }
    }
}

/// A client that counts.
#[derive(Debug, Clone)]
pub struct Metered<S> {
    inner: S,
    counted: Arc<Counted>,
}

impl<S, Sent, Received> Service<Request<Sent>> for Metered<S>
where
    S: Service<Request<Sent>, Response = Response<Received>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    Received: Send + 'static,
{
    type Response = Response<Received>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Received>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Sent>) -> Self::Future {
        let asked = asked(request.method().as_str(), request.uri().path());
        let (counted, answer, began) = (self.counted.clone(), self.inner.call(request), Instant::now());
        Box::pin(async move {
            let answer = answer.await;
            counted.durations.get_or_create(&asked).observe(began.elapsed().as_secs_f64());
            // As the reference says where there was no answer.
            let code = answer.as_ref().map_or("<error>".to_owned(), |answer| answer.status().as_str().to_owned());
            counted.answers.get_or_create(&Answered { code, method: asked.verb }).inc();
            answer
        })
    }
}

/// Reads a path such as `/apis/GROUP/VERSION/namespaces/NAMESPACE/KIND/NAME/SUBRESOURCE`. What is no path of an object, such as
/// discovery, has no kind.
fn asked(verb: &str, path: &str) -> Asked {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => ("", "", &[][..]),
    };
    let (kind, subresource) = match rest {
        ["namespaces", _, kind, rest @ ..] if !["status", "finalize"].contains(kind) => (*kind, rest.get(1).copied()),
        [kind, rest @ ..] => (*kind, rest.get(1).copied()),
        [] => ("", None),
    };
    let text = |part: &str| part.to_owned();
    let subresource = text(subresource.unwrap_or_default());
    Asked { verb: text(verb), group: text(group), version: text(version), kind: text(kind), subresource }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_read_off_the_path_and_no_name_is() {
        let told = |path: &str| {
            let Asked { group, version, kind, subresource, .. } = asked("GET", path);
            [group, version, kind, subresource].join(" ")
        };
        for (path, expected) in [
            ("/api/v1/pods", " v1 pods "),
            ("/api/v1/namespaces/work/pods/web-1/eviction", " v1 pods eviction"),
            ("/api/v1/namespaces/kube-system", " v1 namespaces "),
            ("/api/v1/namespaces/kube-system/secrets", " v1 secrets "),
            ("/apis/karpenter.sh/v1/nodeclaims/default-x7/status", "karpenter.sh v1 nodeclaims status"),
            ("/version", "   "),
        ] {
            assert_eq!(told(path), expected, "{path}");
        }
    }
}
