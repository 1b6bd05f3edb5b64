//! What Kubernetes answered, in words: the API server's own message, without the debug output of the client library.

use kube::core::Status;
use kube::runtime::watcher;
use tenon_api::status_message;
use tenon_model::full_message;

/// An error of a request.
pub(crate) fn message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => of_status(status),
        kube::Error::Service(cause) => full_message(cause.as_ref()),
        kube::Error::HyperError(cause) => full_message(cause),
        other => full_message(other),
    }
}

/// Whether the API server does not let us do it.
pub(crate) fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(refusal) if refusal.code == 403)
}

/// Whether the API server does not let us read a kind, or does not know it.
pub(crate) fn is_unreadable(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(refusal) if [403, 404].contains(&refusal.code))
}

/// An error of a watch.
pub(crate) fn of_watch(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(cause) => format!("cannot list: {}", message(cause)),
        watcher::Error::WatchStartFailed(cause) | watcher::Error::WatchFailed(cause) => message(cause),
        watcher::Error::WatchError(status) => of_status(status),
        watcher::Error::NoResourceVersion => error.to_string(),
    }
}

fn of_status(status: &Status) -> String {
    format!("{} (Kubernetes API, HTTP {})", status_message(status), status.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_the_server_s_own_sentence_and_its_code() {
        let status = Status { message: "pods \"a\" is forbidden".to_owned(), code: 403, ..Status::default() };
        let error = kube::Error::Api(Box::new(status));
        assert_eq!(message(&error), "pods \"a\" is forbidden (Kubernetes API, HTTP 403)");
        assert_eq!(
            of_watch(&watcher::Error::InitialListFailed(error)),
            "cannot list: pods \"a\" is forbidden (Kubernetes API, HTTP 403)"
        );
    }

    #[test]
    fn causes_are_named_once_each() {
        let inner = std::io::Error::other("connection refused");
        let error = kube::Error::ReadEvents(inner);
        assert_eq!(message(&error), "Error reading events stream: connection refused");
    }
}
