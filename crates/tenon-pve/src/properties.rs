//! Proxmox's property strings: `virtio=BC:24:…,bridge=vmbr0,firewall=1`.
//!
//! Read and printed without loss: unknown keys stay, order stays, a value without a key stays in its place. Comparison
//! does not mind the order, because Proxmox answers in another one.

use std::fmt;
use std::str::FromStr;

use crate::grammar::network::is_mac;

/// One `key=value`, or a bare value, which Proxmox allows for the default key (the file of a drive, say).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Property {
    key: Option<String>,
    value: String,
}

/// A property string, taken apart.
#[derive(Debug, Clone, Default)]
pub struct Properties {
    parts: Vec<Property>,
}

impl Properties {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.parts.iter().find(|part| part.key.as_deref() == Some(key)).map(|part| part.value.as_str())
    }

    /// The value without a key.
    pub fn bare(&self) -> Option<&str> {
        self.parts.iter().find(|part| part.key.is_none() && !part.value.is_empty()).map(|part| part.value.as_str())
    }

    /// Sets a key where it stands, or at the end.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), PropertiesError> {
        if value.contains(',') || key.contains([',', '=']) || key.is_empty() {
            return Err(PropertiesError { text: format!("{key}={value}") });
        }
        self.put(key, value.to_owned());
        Ok(())
    }

    /// The same for a key and a value that are known to fit: they come out of a property string, or are encoded.
    pub(crate) fn put(&mut self, key: &str, value: String) {
        debug_assert!(!value.contains(',') && !key.contains([',', '=']) && !key.is_empty(), "{key}={value}");
        match self.parts.iter_mut().find(|part| part.key.as_deref() == Some(key)) {
            Some(part) => part.value = value,
            None => self.parts.push(Property { key: Some(key.to_owned()), value }),
        }
    }

    /// All keys in their order, the bare value as `None`.
    pub fn iter(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        self.parts.iter().map(|part| (part.key.as_deref(), part.value.as_str()))
    }

    /// The model and MAC address of a network card: `virtio=BC:24:…`, whatever the model is called, or `model=…,macaddr=…`.
    pub fn network_card(&self) -> Option<(&str, &str)> {
        if let (Some(model), Some(mac)) = (self.get("model").or(self.bare()), self.get("macaddr")) {
            return Some((model, mac));
        }
        self.iter().find_map(|(key, value)| key.filter(|_| is_mac(value)).map(|model| (model, value)))
    }
}

impl FromStr for Properties {
    type Err = PropertiesError;

    fn from_str(text: &str) -> Result<Properties, PropertiesError> {
        let part = |word: &str| match word.split_once('=') {
            Some(("", _)) => None,
            Some((key, value)) => Some(Property { key: Some(key.to_owned()), value: value.to_owned() }),
            // Proxmox passes over what is empty between two commas, and so do the questions asked here.
            None => Some(Property { key: None, value: word.to_owned() }),
        };
        let parts = text.split(',').map(part).collect::<Option<Vec<_>>>().filter(|_| !text.is_empty());
        parts.map(|parts| Properties { parts }).ok_or_else(|| PropertiesError { text: text.to_owned() })
    }
}

impl fmt::Display for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.parts.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match &part.key {
                Some(key) => write!(f, "{comma}{key}={}", part.value)?,
                None => write!(f, "{comma}{}", part.value)?,
            }
        }
        Ok(())
    }
}

impl PartialEq for Properties {
    fn eq(&self, other: &Properties) -> bool {
        let sorted = |properties: &Properties| {
            let mut parts = properties.parts.clone();
            parts.retain(|part| part.key.is_some() || !part.value.is_empty());
            parts.sort();
            parts
        };
        sorted(self) == sorted(other)
    }
}

impl Eq for Properties {}

/// Why a text is no [`Properties`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a Proxmox property string")]
pub struct PropertiesError {
    text: String,
}

impl PropertiesError {
    pub(crate) fn refusing(text: &str) -> PropertiesError {
        PropertiesError { text: text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Properties {
        text.parse().unwrap()
    }

    #[test]
    fn a_drive_keeps_its_file_and_its_unknown_keys() {
        let text =
            "local:1001/base-1001-disk-0.qcow2/2001/vm-2001-disk-0.qcow2,discard=on,iothread=1,size=512M,future=x=y";
        let mut drive = read(text);
        assert_eq!(drive.to_string(), text);
        assert_eq!(drive.bare(), Some("local:1001/base-1001-disk-0.qcow2/2001/vm-2001-disk-0.qcow2"));
        assert_eq!(drive.get("future"), Some("x=y"));
        drive.set("size", "1G").unwrap();
        assert_eq!(drive.to_string(), text.replace("512M", "1G"));
        assert!(drive.set("size", "1,cache=none").is_err());
    }

    #[test]
    fn every_card_model_shows_its_mac() {
        for (text, model) in [
            ("virtio=BC:24:11:5C:2F:10,bridge=vmbr0", "virtio"),
            ("bridge=vmbr0,e1000=bc:24:11:5c:2f:10", "e1000"),
            ("model=vmxnet3,macaddr=BC:24:11:5C:2F:10", "vmxnet3"),
            ("rtl8139,macaddr=BC:24:11:5C:2F:10", "rtl8139"),
        ] {
            let card = read(text);
            let (found, mac) = card.network_card().unwrap();
            assert_eq!((found, mac.to_uppercase().as_str()), (model, "BC:24:11:5C:2F:10"), "{text}");
        }
        assert_eq!(read("virtio,bridge=vmbr0").network_card(), None);
    }

    #[test]
    fn order_does_not_matter_to_equality() {
        assert_eq!(read("virtio=A,bridge=b"), read("bridge=b,virtio=A"));
        assert_ne!(read("virtio=A,bridge=b"), read("virtio=B,bridge=b"));
    }

    proptest! {
        #[test]
        fn printing_undoes_reading(text in "[a-z0-9:/.=_;-]{1,12}(,[a-z0-9:/.=_;-]{1,12}){0,6}") {
            if let Ok(properties) = text.parse::<Properties>() {
                prop_assert_eq!(properties.to_string(), text);
            }
        }
    }
}
