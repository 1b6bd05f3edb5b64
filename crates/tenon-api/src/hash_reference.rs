//! Which number does the Go provider write behind `Hash:` for what a template is made from?
//!
//! Templates that we make bear its number, so that its controller, started again, takes them for what it would have made and
//! leaves them in place. Its rule: FNV-1 of 64 bits over type names, field names and values, field by field in the order of its
//! own struct. What is empty is left out, and a list is a set.

use serde::Serialize;
use serde_json::Value;

use crate::hash;
use crate::template_image::{fnv1, fnv1_of};

/// The number of a template of this spec. One whose image comes without a check of the certificate has our own number: the Go
/// provider does not know that field, so its number would stay when the field changes.
pub fn of_template(spec: &impl Serialize) -> String {
    let spec = serde_json::to_value(spec).unwrap_or_default();
    let (image, tpm) = (&spec["sourceImage"], &spec["tpm"]);
    if image["insecureSkipTLSVerify"] == true {
        return hash::of_template(&spec);
    }
    let image_fields = [
        ("URL", text(&image["url"])),
        ("ImageName", text(&image["imageName"])),
        ("Checksum", text(&image["checksum"])),
        ("ChecksumType", text(&image["checksumType"])),
    ];
    let fields = [
        ("SourceImage", image.is_object().then(|| structure("SourceImage", &image_fields))),
        ("StorageIDs", set(&spec["storageIDs"])),
        ("Bios", text(&spec["bios"])),
        ("TPM", tpm.is_object().then(|| structure("TPM", &[("Version", text(&tpm["version"]))]))),
    ];
    structure("hashFields", &fields).to_string()
}

/// A struct: its name, and then each field that is not empty.
fn structure(name: &str, fields: &[(&str, Option<u64>)]) -> u64 {
    let filled = fields.iter().filter_map(|(name, value)| value.map(|value| (*name, value)));
    filled.fold(fnv1(name), |hash, (name, value)| numbers(&[hash ^ numbers(&[fnv1(name), value])]))
}

fn text(value: &Value) -> Option<u64> {
    value.as_str().filter(|text| !text.is_empty()).map(fnv1)
}

/// A list whose order says nothing. Two of the same cancel each other out, as they do there.
fn set(value: &Value) -> Option<u64> {
    let items = value.as_array()?;
    Some(items.iter().filter_map(Value::as_str).fold(0, |set, item| set ^ fnv1(item)))
}

fn numbers(numbers: &[u64]) -> u64 {
    fnv1_of(numbers.iter().flat_map(|number| number.to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What the Go provider's own code gives for these.
    #[test]
    fn the_number_is_the_one_of_the_go_provider() {
        let plain = json!({
            "sourceImage": { "url": "https://images.example.com/debian-13-kubernetes-1.qcow2",
                "imageName": "debian-13-kubernetes-1.qcow2" },
            "storageIDs": ["local"], "bios": "seabios", "network": [{ "bridge": "vmbr0" }],
        });
        assert_eq!(of_template(&plain), "5376864782030154308");
        let image = json!({ "url": "https://images.example/a.qcow2" });
        let uefi = json!({ "sourceImage": image, "storageIDs": ["local", "fast"], "bios": "ovmf", "tpm": { "version": "v2.0" } });
        assert_eq!(of_template(&uefi), "7839014398920040695");
        let checked = json!({
            "sourceImage": { "url": "https://images.example/a.qcow2", "imageName": "a.qcow2",
                "checksum": "0123456789abcdef0123456789abcdef", "checksumType": "md5" },
            "storageIDs": ["local", "fast"], "bios": "seabios", "tpm": { "version": "v1.2" }, "machine": "pc",
        });
        assert_eq!(of_template(&checked), "14620171833608859905");
    }

    #[test]
    fn an_image_whose_server_is_not_checked_has_a_number_of_its_own() {
        let mut spec = json!({ "sourceImage": { "url": "https://images.example/a.qcow2" }, "storageIDs": ["local"] });
        let checked = of_template(&spec);
        spec["sourceImage"]["insecureSkipTLSVerify"] = json!(false);
        assert_eq!(of_template(&spec), checked);
        spec["sourceImage"]["insecureSkipTLSVerify"] = json!(true);
        assert_ne!(of_template(&spec), checked);
    }
}
