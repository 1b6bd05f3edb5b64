//! Flags of Karpenter that change nothing here: accepted, so that its manifests go on working, and named at start.

use clap::Args;

/// Flags without effect. Whether a value makes sense is not checked: nothing reads it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Accepted for compatibility with Karpenter, without effect")]
pub(super) struct CompatibilityArgs {
    /// Name of the webhook Service of Karpenter.
    #[arg(long, value_name = "NAME", env = "KARPENTER_SERVICE")]
    karpenter_service: Option<String>,
    /// Requests per second to the Kubernetes API.
    #[arg(long, value_name = "COUNT", env = "KUBE_CLIENT_QPS", allow_hyphen_values = true)]
    kube_client_qps: Option<String>,
    /// Requests to the Kubernetes API in a burst.
    #[arg(long, value_name = "COUNT", env = "KUBE_CLIENT_BURST", allow_hyphen_values = true)]
    kube_client_burst: Option<String>,
    /// Serve profiles of the Go runtime.
    #[arg(long, value_name = "BOOL", env = "ENABLE_PROFILING", num_args = 0..=1)]
    #[arg(require_equals = true, default_missing_value = "true")]
    enable_profiling: Option<String>,
    /// Whether a standby replica keeps its caches empty.
    #[arg(long, value_name = "BOOL", env = "DISABLE_CONTROLLER_WARMUP", num_args = 0..=1)]
    #[arg(require_equals = true, default_missing_value = "true")]
    disable_controller_warmup: Option<String>,
    /// Memory limit of the container, for the garbage collector of Go.
    #[arg(long, value_name = "BYTES", env = "MEMORY_LIMIT", allow_hyphen_values = true)]
    memory_limit: Option<String>,
    /// Where the log is written. The log always goes to standard output.
    #[arg(long, value_name = "PATHS", env = "LOG_OUTPUT_PATHS")]
    log_output_paths: Option<String>,
    /// Where errors of the logger are written.
    #[arg(long, value_name = "PATHS", env = "LOG_ERROR_OUTPUT_PATHS")]
    log_error_output_paths: Option<String>,
}

impl CompatibilityArgs {
    /// Every flag that was given a value other than Karpenter's default, with what to know about it.
    pub(super) fn notes(&self) -> Vec<String> {
        let all = [
            ("karpenter-service", &self.karpenter_service, "", "Tenon has no webhook"),
            ("kube-client-qps", &self.kube_client_qps, "200", "requests are limited by their number at a time"),
            ("kube-client-burst", &self.kube_client_burst, "300", "requests are limited by their number at a time"),
            ("enable-profiling", &self.enable_profiling, "false", "there is no Go runtime"),
            (
                "disable-controller-warmup",
                &self.disable_controller_warmup,
                "true",
                "a standby replica fills its caches when it leads",
            ),
            ("memory-limit", &self.memory_limit, "-1", "there is no garbage collector"),
            ("log-output-paths", &self.log_output_paths, "stdout", "the log goes to standard output"),
            ("log-error-output-paths", &self.log_error_output_paths, "stderr", "errors are part of the log"),
        ];
        let given = all.into_iter().filter_map(|(flag, value, default, why)| {
            let value = value.as_deref().map(str::trim).filter(|value| !value.is_empty() && *value != default)?;
            Some(format!("--{flag} ({value}) has no effect: {why}"))
        });
        given.collect()
    }
}
