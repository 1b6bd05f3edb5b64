//! With which command does systemd start the kubelet of a Tenon node?

use crate::node_labels::Sorted;

/// The files that the command names.
pub(crate) struct Paths {
    pub(crate) bootstrap_kubeconfig: &'static str,
    pub(crate) kubeconfig: &'static str,
    pub(crate) config: &'static str,
}

/// The drop-in for `kubelet.service`. Name and labels have been checked, so that no word of the command holds a
/// character that systemd or the kubelet would split at or expand.
pub(crate) fn drop_in(paths: &Paths, node_name: &str, labels: &Sorted<'_>) -> String {
    let mut command = format!(
        "/usr/bin/kubelet --bootstrap-kubeconfig={} --kubeconfig={} --config={} --hostname-override={node_name}",
        paths.bootstrap_kubeconfig, paths.kubeconfig, paths.config
    );
    if !labels.set.is_empty() {
        let pairs: Vec<String> = labels.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
        command.push_str(" --node-labels=");
        command.push_str(&pairs.join(","));
    }
    format!(
        "[Unit]\n\
         Wants=containerd.service\n\
         After=containerd.service\n\
         [Service]\n\
         # The empty one takes away the image's own command; systemd would refuse two.\n\
         ExecStart=\n\
         ExecStart={command}\n"
    )
}
