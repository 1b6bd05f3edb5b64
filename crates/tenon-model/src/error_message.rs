//! How an error with its causes becomes one line for people.

use std::error::Error;

/// What the HTTP library puts around the cause of a failed request. It says nothing that the cause does not.
const EMPTY_WRAPPER: &str = "client error (";

/// An error and its causes on one line, outermost first. A cause that the text before already ends with is not repeated.
pub fn full_message(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        let is_news = !text.is_empty() && !message.ends_with(&text) && !text.starts_with(EMPTY_WRAPPER);
        if is_news {
            message = format!("{message}: {text}");
        }
        source = cause.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        #[source]
        cause: Option<Box<Layer>>,
    }

    fn layers(texts: &[&'static str]) -> Layer {
        let mut cause = None;
        for text in texts.iter().rev() {
            cause = Some(Box::new(Layer { text, cause }));
        }
        *cause.unwrap()
    }

    #[test]
    fn every_cause_is_said_once() {
        let error = layers(&["cannot list nodes", "cannot connect", "client error (Connect)", "connection refused"]);
        assert_eq!(full_message(&error), "cannot list nodes: cannot connect: connection refused");
        let repeated = layers(&["lease lost: another replica holds it now", "another replica holds it now", ""]);
        assert_eq!(full_message(&repeated), "lease lost: another replica holds it now");
    }
}
