//! What the Kubernetes API server said about a failed request, for people.

use kube::core::Status;

/// The server's message, with its reason and code where there is no message. The `Display` of the client's error prints
/// the whole reply as a Rust value, which is nothing for a log or a condition.
pub fn status_message(status: &Status) -> String {
    match (status.message.is_empty(), status.reason.is_empty()) {
        (false, _) => status.message.clone(),
        (true, false) => format!("{} (HTTP {})", status.reason, status.code),
        (true, true) => format!("HTTP {}", status.code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_the_server_comes_first() {
        let status = Status::failure("nodes \"a\" not found", "NotFound").with_code(404);
        assert_eq!(status_message(&status), "nodes \"a\" not found");
        assert_eq!(status_message(&Status::failure("", "Gone").with_code(410)), "Gone (HTTP 410)");
        assert_eq!(status_message(&Status::failure("", "").with_code(500)), "HTTP 500");
    }
}
