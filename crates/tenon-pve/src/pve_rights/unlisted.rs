//! What of a request is in no row of the table? Tests ask it about every request that was made.

use super::{Flow, PVE_CALLS, PveCall};

/// Parameters that no privilege depends on.
const FREE: [&str; 5] = ["delete", "digest", "node", "pool", "vmid"];

/// What of a request no row of these flows is about: the request itself, or some of its parameters. `path` has its percent escapes
/// decoded.
pub fn unlisted<'a>(flows: &[Flow], (method, path): (&str, &str), keys: impl Iterator<Item = &'a str>) -> Vec<String> {
    let rows: Vec<&PveCall> = PVE_CALLS.iter().filter(|call| call.is(method, path)).collect();
    if !rows.iter().any(|row| flows.contains(&row.flow)) {
        return vec![format!("{method} {path}")];
    }
    if rows.iter().all(|row| row.keys.is_empty()) {
        return Vec::new();
    }
    let is_unlisted = |key: &&str| !FREE.contains(key) && !rows.iter().any(|row| row.is_about(key));
    keys.filter(is_unlisted).map(|key| format!("`{key}` of {method} {path}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_no_row_is_named() {
        let told = |flows: &[Flow], request, keys: &[&'static str]| unlisted(flows, request, keys.iter().copied());
        let config = ("PUT", "/nodes/pve1/qemu/20000/config");
        assert_eq!(told(&[Flow::Launch], config, &["cores", "net0", "digest"]), Vec::<String>::new());
        assert_eq!(told(&[Flow::Launch], config, &["args", "cores"]), [format!("`args` of PUT {}", config.1)]);
        assert_eq!(told(&[Flow::Templates], ("POST", "/nodes/pve1/qemu/9000/clone"), &[]).len(), 1);
        assert_eq!(told(&Flow::MADE, ("GET", "/cluster/options"), &[]), ["GET /cluster/options"]);
        assert_eq!(told(&Flow::MADE, ("PATCH", "/version"), &[]), ["PATCH /version"]);
        assert_eq!(told(&Flow::MADE, ("GET", "/version"), &["any"]), Vec::<String>::new());
    }
}
