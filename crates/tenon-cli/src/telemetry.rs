//! What is logged, and in which form. A line of the log goes to standard output, whole.
//!
//! Libraries never speak below `info`: what they would say there are requests, and nobody has checked those for secrets.

use std::io::{self, IsTerminal as _};

use anyhow::Context as _;
use clap::ValueEnum;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;

/// All our crates begin with this.
const OURS: &str = "tenon";

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Errors only.
    Error,
    /// Also warnings.
    Warn,
    /// Also every change. An empty text means this too, because charts write one.
    #[value(alias = "")]
    Info,
    /// Also the reasons for decisions.
    Debug,
    /// Also every step.
    Trace,
}

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// Plain text.
    Text,
}

impl LogLevel {
    fn filter(self) -> LevelFilter {
        match self {
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
            LogLevel::Trace => LevelFilter::TRACE,
        }
    }
}

/// Logs to standard output from now on. Works once in a process.
pub fn install(level: LogLevel, format: LogFormat) -> anyhow::Result<()> {
    tracing::subscriber::set_global_default(subscriber(level, format, io::stdout)).context("cannot set up logging")
}

fn subscriber<W>(level: LogLevel, format: LogFormat, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = fmt::layer().with_writer(writer);
    let layer = match format {
        LogFormat::Json => layer.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
        LogFormat::Text => layer.with_ansi(io::stdout().is_terminal()).boxed(),
    };
    let level = level.filter();
    // Its spans would stand before every line of ours and say what the line says itself.
    let quiet = ("kube_runtime", level.min(LevelFilter::WARN));
    let filter = Targets::new().with_default(level.min(LevelFilter::INFO)).with_targets([(OURS, level), quiet]);
    tracing_subscriber::registry().with(layer.with_filter(filter))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::sync::Arc;

    use super::*;

    fn logged(level: LogLevel, format: LogFormat) -> String {
        let (mut reader, writer) = io::pipe().unwrap();
        tracing::subscriber::with_default(subscriber(level, format, Arc::new(writer)), || {
            tracing::info!(port = 7, "begun");
            tracing::debug!("because");
            tracing::debug!(target: "kube_client", "GET /secrets");
            tracing::error!(target: "kube_client", "broken");
        });
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_line_is_one_object_with_its_fields_beside_the_message() {
        let text = logged(LogLevel::Info, LogFormat::Json);
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!((lines[0]["message"].as_str(), lines[0]["port"].as_u64()), (Some("begun"), Some(7)));
        assert_eq!(lines[0]["level"], "INFO");
    }

    #[test]
    fn a_library_never_says_what_it_asks() {
        let text = logged(LogLevel::Trace, LogFormat::Text);
        assert!(text.contains("because") && text.contains("broken") && !text.contains("secrets"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        assert_eq!(logged(LogLevel::Error, LogFormat::Text).lines().count(), 1);
    }
}
