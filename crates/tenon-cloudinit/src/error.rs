//! Why can a seed not be rendered?

use tenon_gotemplate::TemplateError;

use crate::templates::SeedFileName;

/// A seed that would never become a node, found before a VM is made for it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name becomes a hostname, a Node and a word of a unit file.
    #[error("node name {name:?} is not a DNS subdomain")]
    NodeName {
        /// What was given.
        name: String,
    },
    /// A kubelet sends its token only where the certificate can be checked.
    #[error("API server URL {url:?} does not start with https:// or contains white space")]
    ApiServer {
        /// What was given.
        url: String,
    },
    /// Without it the guest could not tell the API server from another.
    #[error("the cluster CA is not a PEM certificate")]
    ClusterCa,
    /// The text is not repeated here, because it may be a secret.
    #[error("the bootstrap token does not have the form of 6 lower-case letters or digits, a dot, and 16 more")]
    Token,
    /// Two interfaces of one name would be one key of a map.
    #[error("two network interfaces have the name {name:?}")]
    DuplicateInterface {
        /// The name they share.
        name: String,
    },
    /// A kubelet with these thresholds does not start.
    #[error("imageGCHighThresholdPercent ({high}) must be greater than imageGCLowThresholdPercent ({low})")]
    ImageGcThresholds {
        /// Where collection starts, given or the kubelet's default.
        high: u32,
        /// Where it stops, given or the kubelet's default.
        low: u32,
    },
    /// A kubelet with this policy and nothing reserved does not start.
    #[error("the static CPU manager policy needs `cpu` in kubeReserved or systemReserved")]
    StaticCpuWithoutReserve,
    /// A template of the user's is wrong.
    #[error("{file}, line {}, column {}: {}", error.line, error.column, explained(error))]
    Template {
        /// Which file it makes.
        file: SeedFileName,
        /// Where it is wrong, and why.
        error: TemplateError,
    },
    /// What a template gave is no YAML.
    #[error("{file} renders to text that is not valid YAML: line {line}, column {column} of the rendered text: {why}")]
    Unreadable {
        /// Which file.
        file: SeedFileName,
        /// The line of the rendered text.
        line: usize,
        /// The column of the rendered text.
        column: usize,
        /// What the parser said.
        why: String,
    },
    /// The emitter refused a text.
    #[error("cannot write {what} as YAML")]
    Yaml {
        /// Which text.
        what: &'static str,
        /// What the emitter said.
        source: serde_saphyr::SerializeError,
    },
    /// The image writer refused a file.
    #[error("cannot build the seed ISO image")]
    Iso {
        /// What the writer said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// What is wrong, with the piece of the template that was running.
fn explained(error: &TemplateError) -> String {
    match &error.running {
        Some(running) if running.piece.contains("{{") => {
            format!("{} in {}", error.message, without_texts(&running.piece))
        }
        Some(running) if !running.piece.is_empty() => {
            format!("{} in {{{{ {} }}}}", error.message, without_texts(&running.piece))
        }
        _ => error.message.clone(),
    }
}

/// A piece of a template without what stands between quotes, which may be a secret.
fn without_texts(piece: &str) -> String {
    let (mut shown, mut open) = (String::new(), None);
    for c in piece.chars() {
        match open {
            Some(quote) if c == quote => {
                shown.push(c);
                open = None;
            }
            Some(_) => {}
            None => {
                shown.push(c);
                if matches!(c, '"' | '`') {
                    shown.push('…');
                    open = Some(c);
                }
            }
        }
    }
    shown
}

impl Error {
    /// Whether a setting of the kubelet is the trouble.
    pub fn is_of_kubelet(&self) -> bool {
        matches!(self, Error::ImageGcThresholds { .. } | Error::StaticCpuWithoutReserve)
    }

    /// The file that a user's template makes and that is wrong, if that is the trouble.
    pub fn file(&self) -> Option<SeedFileName> {
        match self {
            Error::Template { file, .. } | Error::Unreadable { file, .. } => Some(*file),
            _ => None,
        }
    }
}
