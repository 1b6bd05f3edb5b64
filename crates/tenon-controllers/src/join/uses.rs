//! What the first-boot data of each class uses to join, as far as that is known.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::ResourceExt;
use tenon_api::{MetadataType, ProxmoxNodeClass};

use super::JoinUse;

/// Classes that are remembered at most. One that is forgotten is noted again when it is looked at.
const CLASSES: usize = 10_000;

/// What was found by rendering, by class. Cheap to clone; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct JoinUses(Arc<Mutex<BTreeMap<String, JoinUse>>>);

impl JoinUses {
    /// The data of a class was rendered, and uses this.
    pub(crate) fn note(&self, class: &ProxmoxNodeClass, used: JoinUse) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CLASSES {
            known.clear();
        }
        known.insert(class.name_any(), used);
    }

    /// What the data of a class uses; nothing if that is not known.
    pub(crate) fn of(&self, class: &ProxmoxNodeClass) -> Option<JoinUse> {
        let options = &class.spec.metadata_options;
        if options.type_ == MetadataType::None {
            return Some(JoinUse::NONE);
        }
        if options.templates_ref.is_none() {
            return Some(JoinUse::ALL);
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&class.name_any()).copied()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_built_in_is_known_and_what_users_write_is_noted() {
        let class = |options: serde_json::Value| -> ProxmoxNodeClass {
            let template = json!({ "kind": "ProxmoxUnmanagedTemplate", "name": "a" });
            let spec = json!({ "instanceTemplateRef": template, "metadataOptions": options });
            ProxmoxNodeClass::new("a", serde_json::from_value(spec).unwrap())
        };
        let uses = JoinUses::default();
        assert_eq!(uses.of(&class(json!({ "type": "none" }))), Some(JoinUse::NONE));
        assert_eq!(uses.of(&class(json!({ "type": "cdrom" }))), Some(JoinUse::ALL));
        let own = class(json!({ "type": "cdrom", "templatesRef": { "name": "b" } }));
        assert_eq!(uses.of(&own), None);
        uses.note(&own, JoinUse::LEAST);
        assert_eq!(uses.of(&own), Some(JoinUse::LEAST));
    }
}
