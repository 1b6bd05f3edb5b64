//! What is there before anybody has made anything?

use serde_json::{Value, json};

use super::state::State;
use super::target::Target;

impl State {
    /// The namespaces every cluster has.
    pub(crate) fn make_first_objects(&mut self) {
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            self.make("namespaces", "", json!({ "metadata": { "name": name } }));
        }
    }

    /// What every namespace has.
    pub(crate) fn furnish(&mut self, namespace: &str) {
        let authority = self.authority.pem();
        let roots = json!({ "metadata": { "name": "kube-root-ca.crt" }, "data": { "ca.crt": authority } });
        self.make("configmaps", namespace, roots);
        self.make("serviceaccounts", namespace, json!({ "metadata": { "name": "default" } }));
    }

    fn make(&mut self, resource: &str, namespace: &str, object: Value) {
        let kind = self.built_in("", resource);
        let target = Target { kind, namespace: namespace.to_owned(), name: None, part: None };
        // Nothing of that name can be there yet, and there is no other way to be refused.
        let _ = self.create(&target, object);
    }
}
