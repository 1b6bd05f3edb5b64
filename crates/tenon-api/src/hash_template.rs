//! Does the number behind `Hash:` in a template's description still stand for what its `ProxmoxTemplate` says?
//!
//! That number is the image of every node made from the template. Whoever wrote it, it is believed: on first sight our own hash
//! of the same fields is noted beside it, and until ours changes the number stands, nodes keep their image, and nothing is
//! made anew. When ours changes, the next template gets the number that the Go controller would write ([`hash_reference`]).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::hash::{self, CLASS_VERSION};
use crate::{hash_reference, names};

/// How a template stands to what its object says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateStanding {
    /// Nobody of us saw it before: what it holds is believed, and these annotations note what that was.
    FirstSeen(BTreeMap<String, String>),
    /// It holds what its object says.
    Holds,
    /// Its object says something else by now. The template that is made then has `Hash: <number>` in its description, and
    /// its object these annotations.
    Outdated {
        /// The new number.
        number: String,
        /// What to write on the object once it is made.
        annotations: BTreeMap<String, String>,
    },
}

/// Judges a template by the annotations of its `ProxmoxTemplate` and that object's spec.
pub fn judge(annotations: &BTreeMap<String, String>, spec: &impl Serialize) -> TemplateStanding {
    let ours = hash::of_template(spec);
    let noted = annotations.get(names::ANNOTATION_TEMPLATE_SEEN).and_then(|seen| seen.split_once('/'));
    let note = (names::ANNOTATION_TEMPLATE_SEEN.to_owned(), format!("{CLASS_VERSION}/{ours}"));
    match noted {
        Some((CLASS_VERSION, seen)) if seen == ours => TemplateStanding::Holds,
        Some((CLASS_VERSION, _)) => {
            let number = hash_reference::of_template(spec);
            TemplateStanding::Outdated {
                annotations: [
                    note,
                    (names::ANNOTATION_TEMPLATE_HASH.to_owned(), number.clone()),
                    (names::ANNOTATION_TEMPLATE_HASH_VERSION.to_owned(), CLASS_VERSION.to_owned()),
                ]
                .into(),
                number,
            }
        }
        // A note of another version says nothing, as if there were none.
        _ => TemplateStanding::FirstSeen([note].into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(url: &str) -> Value {
        json!({ "sourceImage": { "url": url }, "storageIDs": ["local", "fast"], "network": [{ "bridge": "vmbr0" }] })
    }

    fn go_stamped() -> BTreeMap<String, String> {
        [
            (names::ANNOTATION_TEMPLATE_HASH.to_owned(), "15108473915739476123".to_owned()),
            (names::ANNOTATION_TEMPLATE_HASH_VERSION.to_owned(), "v1".to_owned()),
        ]
        .into()
    }

    #[test]
    fn a_number_of_the_go_controller_is_believed_until_what_it_stands_for_changes() {
        let mut annotations = go_stamped();
        let TemplateStanding::FirstSeen(note) = judge(&annotations, &spec("https://a.example/a.qcow2")) else {
            panic!("it is not seen for the first time");
        };
        annotations.extend(note);
        assert_eq!(annotations[names::ANNOTATION_TEMPLATE_HASH], "15108473915739476123", "the number is left alone");
        assert_eq!(judge(&annotations, &spec("https://a.example/a.qcow2")), TemplateStanding::Holds);
        let mut in_place = spec("https://a.example/a.qcow2");
        in_place["network"] = json!([{ "bridge": "vmbr1" }]);
        in_place["storageIDs"] = json!(["fast", "local"]);
        in_place["bios"] = json!("seabios");
        assert_eq!(judge(&annotations, &in_place), TemplateStanding::Holds);

        let changed = spec("https://a.example/b.qcow2");
        let TemplateStanding::Outdated { number, annotations: written } = judge(&annotations, &changed) else {
            panic!("another image is another template");
        };
        assert_eq!(number, hash_reference::of_template(&changed));
        annotations.extend(written);
        assert_eq!(annotations[names::ANNOTATION_TEMPLATE_HASH], number);
        assert_eq!(annotations[names::ANNOTATION_TEMPLATE_HASH_VERSION], CLASS_VERSION);
        assert_eq!(judge(&annotations, &changed), TemplateStanding::Holds);
    }

    #[test]
    fn a_certificate_that_is_checked_is_no_change() {
        let mut spec = spec("https://a.example/a.qcow2");
        let number = hash::of_template(&spec);
        spec["sourceImage"]["insecureSkipTLSVerify"] = json!(false);
        assert_eq!(hash::of_template(&spec), number);
        spec["sourceImage"]["insecureSkipTLSVerify"] = json!(true);
        assert_ne!(hash::of_template(&spec), number);
    }

    #[test]
    fn a_note_of_another_version_is_written_anew_and_changes_nothing() {
        let mut annotations = go_stamped();
        annotations.insert(names::ANNOTATION_TEMPLATE_SEEN.to_owned(), "v1-rs0/17".to_owned());
        assert!(matches!(judge(&annotations, &spec("https://a.example/a.qcow2")), TemplateStanding::FirstSeen(_)));
    }
}
