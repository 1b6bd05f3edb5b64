//! When the client itself asks again, and how often. Everything else is for the caller, who knows what it was for.

use std::time::Duration;

use http::Method;

use crate::error::{Cause, Doubtful};
use crate::transport::TransportError;

/// How often a request goes out, and what lies between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Times at the most, the first included. Every endpoint is tried each time.
    pub attempts: u32,
    /// The pause after the first; it doubles each time.
    pub first_pause: Duration,
}

impl Default for Retry {
    fn default() -> Retry {
        // Long enough for a Proxmox that reloads its certificate, short enough for somebody who waits.
        Retry { attempts: 3, first_pause: Duration::from_millis(200) }
    }
}

impl Retry {
    /// The pause before the next attempt, if there may be one after this many.
    ///
    /// What was certainly not sent may go again, whatever it is. A read whose connection broke may, too: Proxmox closes
    /// connections that were idle for five seconds, and a read changes nothing. A read that got no answer in its time
    /// may not: it has already cost all the patience there was.
    pub(crate) fn pause_after(&self, made: u32, method: &Method, cause: &Cause) -> Option<Duration> {
        let may_go_again = match cause {
            Cause::NotSent(TransportError::Connect(_)) => true,
            Cause::MaybeDone(Doubtful::Lost(TransportError::Broken(_))) => method == Method::GET,
            _ => false,
        };
        let left = may_go_again && made < self.attempts;
        left.then(|| self.first_pause.saturating_mul(2_u32.saturating_pow(made.saturating_sub(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Refusal;

    fn lost(error: TransportError) -> Cause {
        Cause::MaybeDone(Doubtful::Lost(error))
    }

    #[test]
    fn only_what_was_not_sent_and_broken_reads_go_again() {
        let retry = Retry { attempts: 3, first_pause: Duration::from_secs(1) };
        let again = |method: &Method, cause: Cause| retry.pause_after(1, method, &cause).is_some();
        assert!(again(&Method::POST, Cause::NotSent(TransportError::Connect("x".into()))));
        assert!(!again(&Method::GET, Cause::NotSent(TransportError::Withheld("x".into()))));
        assert!(again(&Method::GET, lost(TransportError::Broken("x".into()))));
        for method in [Method::POST, Method::PUT, Method::DELETE] {
            assert!(!again(&method, lost(TransportError::Broken("x".into()))), "{method}");
        }
        assert!(!again(&Method::GET, lost(TransportError::TimedOut(30))));
        assert!(!again(&Method::GET, Cause::MaybeDone(Doubtful::HostDown { status: 595, words: String::new() })));
        assert!(!again(&Method::GET, Cause::Refused(Refusal::of_task("x"))));
    }

    #[test]
    fn pauses_double_and_attempts_end() {
        let retry = Retry { attempts: 4, first_pause: Duration::from_secs(1) };
        let cause = Cause::NotSent(TransportError::Connect("x".into()));
        let pauses: Vec<_> = (1..6).map(|made| retry.pause_after(made, &Method::GET, &cause)).collect();
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(pauses, [seconds(1), seconds(2), seconds(4), None, None]);
    }
}
