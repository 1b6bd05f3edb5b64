//! `tenon crds`: the custom resource definitions a cluster needs before the first object.

use std::io::Write;

use anyhow::Context as _;

/// Prints every definition, as one stream of YAML for `kubectl apply -f -`.
pub fn print(out: &mut dyn Write) -> anyhow::Result<()> {
    for definition in tenon_api::definitions() {
        let yaml = serde_saphyr::to_string(&definition).context("cannot write a definition as YAML")?;
        write!(out, "---\n{yaml}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_is_a_document_of_its_own() {
        let mut out = Vec::new();
        print(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("---\n").count(), tenon_api::definitions().len());
        for kind in ["NodePool", "NodeClaim", "ProxmoxNodeClass", "ProxmoxUnmanagedTemplate"] {
            assert!(text.contains(&format!("kind: {kind}\n")), "{kind}");
        }
    }
}
