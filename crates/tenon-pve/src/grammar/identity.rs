//! What a VM tells its guest about itself (`smbios1`), and what Proxmox notes of its making (`meta`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::option_type;
use super::shape::{META, SMBIOS};
use crate::properties::Properties;
use crate::reply::is_true;

option_type!(
    /// The SMBIOS fields a guest reads: `uuid=…,base64=1,sku=…,serial=…`.
    ///
    /// A write without the uuid loses it for good, and with it the proof whose VM it is: nothing here removes it.
    Smbios,
    SMBIOS
);

impl Smbios {
    /// The uuid, in lower case.
    pub fn uuid(&self) -> Option<String> {
        self.get("uuid").map(str::to_lowercase)
    }

    /// A field as the guest reads it. `None` if it is not there, or is no text.
    pub fn text(&self, field: &str) -> Option<String> {
        let value = self.get(field)?;
        if !self.is_encoded() {
            return Some(value.to_owned());
        }
        String::from_utf8(BASE64.decode(value).ok()?).ok()
    }

    /// The same with a text field set. Proxmox takes little more than letters and digits as they are, so all fields are
    /// encoded from then on, those that were not before as well.
    #[must_use]
    pub fn with_text(&self, field: SmbiosText, text: &str) -> Smbios {
        let mut fields = Properties::default();
        for (key, value) in self.0.iter().filter(|(_, value)| !value.is_empty()) {
            let key = SMBIOS.name_of(key);
            let is_text = !matches!(key, "uuid" | "base64");
            let value = if is_text && !self.is_encoded() { BASE64.encode(value) } else { value.to_owned() };
            fields.put(key, value);
        }
        fields.put("base64", "1".to_owned());
        fields.put(field.name(), BASE64.encode(text));
        Smbios(fields)
    }

    fn is_encoded(&self) -> bool {
        self.get("base64").and_then(is_true).unwrap_or_default()
    }
}

/// The text fields of [`Smbios`] that Tenon writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmbiosText {
    /// The serial number.
    Serial,
    /// The SKU number.
    Sku,
}

impl SmbiosText {
    fn name(self) -> &'static str {
        match self {
            SmbiosText::Serial => "serial",
            SmbiosText::Sku => "sku",
        }
    }
}

option_type!(
    /// When and by which QEMU a VM was made. A clone inherits it, so it says nothing about who a VM is.
    Meta,
    META
);

impl Meta {
    /// When it was made, in seconds since 1970.
    pub fn made_at(&self) -> Option<u64> {
        self.get("ctime")?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_a_field_keeps_the_uuid_and_encodes_what_was_plain() {
        let plain: Smbios = "uuid=9E01F0B4-0000-4000-8000-000000000001,family=plain".parse().unwrap();
        let set = plain.with_text(SmbiosText::Serial, "h=node-a;i=2001");
        assert_eq!(
            set.to_string(),
            "uuid=9E01F0B4-0000-4000-8000-000000000001,family=cGxhaW4=,base64=1,serial=aD1ub2RlLWE7aT0yMDAx"
        );
        assert_eq!(set.text("serial").as_deref(), Some("h=node-a;i=2001"));
        assert_eq!((set.text("family"), set.uuid()), (plain.text("family"), plain.uuid()));
        let twice = set.with_text(SmbiosText::Serial, "h=node-a;i=2001");
        assert_eq!(twice.to_string(), set.to_string());
    }

    #[test]
    fn fields_that_are_encoded_are_not_encoded_again() {
        for flag in ["1", "on", "yes", "true", "Yes"] {
            let encoded: Smbios = format!("base64={flag},family=cGxhaW4=").parse().unwrap();
            let set = encoded.with_text(SmbiosText::Sku, "s1");
            assert_eq!(set.to_string(), "base64=1,family=cGxhaW4=,sku=czE=", "base64={flag}");
        }
        for flag in ["0", "off", "no", "false"] {
            let plain: Smbios = format!("base64={flag},family=plain").parse().unwrap();
            let set = plain.with_text(SmbiosText::Sku, "s1");
            assert_eq!(set.to_string(), "base64=1,family=cGxhaW4=,sku=czE=", "base64={flag}");
        }
    }

    #[test]
    fn the_hour_of_making_is_read() {
        assert_eq!("creation-qemu=10.0.13,ctime=1794730492".parse::<Meta>().unwrap().made_at(), Some(1_794_730_492));
    }
}
