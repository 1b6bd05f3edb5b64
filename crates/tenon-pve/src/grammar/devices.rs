//! A VM's guest agent channel (`agent`), devices passed through to it (`hostpciN`) and the order it boots from (`boot`).

use super::option_type;
use super::shape::{AGENT, BOOT, PASS_THROUGH};
use crate::reply::is_true;

option_type!(
    /// Whether the guest runs an agent, and what it is used for: `1`, `enabled=true,fstrim_cloned_disks=1`.
    AgentOption,
    AGENT
);

impl AgentOption {
    /// Whether there is one.
    pub fn is_enabled(&self) -> bool {
        self.get("enabled").and_then(is_true).unwrap_or_default()
    }
}

option_type!(
    /// A device of the host, by address or by a mapping: `0000:01:00.0;0000:01:00.1,pcie=1`, `mapping=gpu0`.
    PassThrough,
    PASS_THROUGH
);

impl PassThrough {
    /// The cluster-wide name of the device. Without one only root may set it.
    pub fn mapping(&self) -> Option<&str> {
        self.get("mapping")
    }

    /// Addresses on the host.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        self.get("host").into_iter().flat_map(|host| host.split(';')).filter(|address| !address.is_empty())
    }
}

option_type!(
    /// What a VM boots from: `order=scsi0;ide2`, or letters as it was done long ago: `cdn`.
    BootOrder,
    BOOT
);

impl BootOrder {
    /// Devices in the order they are tried.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.get("order").into_iter().flat_map(|order| order.split(';')).filter(|device| !device.is_empty())
    }

    /// Whether it lists devices at all, as opposed to the letters of old.
    pub fn lists_devices(&self) -> bool {
        self.get("order").is_some()
    }

    /// The same without a device. Proxmox leaves one that was emptied in its place.
    pub fn without(&self, device: &str) -> String {
        let kept: Vec<&str> = self.devices().filter(|kept| *kept != device).collect();
        format!("order={}", kept.join(";"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_an_agent_is_read() {
        for text in ["1", "enabled=1", "enabled=true,type=virtio", "on"] {
            assert!(text.parse::<AgentOption>().unwrap().is_enabled(), "{text}");
        }
        for text in ["0", "enabled=0", "type=isa", "enabled=maybe"] {
            assert!(!text.parse::<AgentOption>().unwrap().is_enabled(), "{text}");
        }
    }

    #[test]
    fn devices_and_boot_orders_are_read() {
        let device: PassThrough = "0000:01:00.0;0000:01:00.1,pcie=1".parse().unwrap();
        assert_eq!((device.mapping(), device.addresses().count()), (None, 2));
        assert_eq!("mapping=gpu0".parse::<PassThrough>().unwrap().mapping(), Some("gpu0"));
        let boot: BootOrder = "order=scsi0;ide2;net0".parse().unwrap();
        assert_eq!(boot.devices().collect::<Vec<_>>(), ["scsi0", "ide2", "net0"]);
        assert_eq!(boot.without("ide2"), "order=scsi0;net0");
        for old in [" ", "cdn"] {
            assert_eq!(old.parse::<BootOrder>().unwrap().devices().count(), 0, "{old}");
        }
    }
}
