//! Does the guest come up with the network it was given?

use tenon_cloudinit::{Error, Interface, Network, NetworkConfigVersion, SeedInput, Templates, render};

use crate::read_back::{seed, text};
use crate::sample::{bare, texts};

fn with(interfaces: Vec<Interface>) -> SeedInput {
    SeedInput { network: Network { interfaces, ..Network::default() }, ..bare() }
}

fn interface(name: &str) -> Interface {
    Interface { name: name.to_owned(), mac: "11:22:33:44:55:01".to_owned(), ..Interface::default() }
}

fn network_config(input: &SeedInput) -> String {
    text(&seed(input).network_config.unwrap())
}

#[test]
fn a_vm_without_interfaces_has_no_network_config() {
    assert_eq!(seed(&bare()).network_config, None);
}

#[test]
fn a_hardware_address_of_digits_stays_a_text() {
    let text = network_config(&with(vec![Interface { dhcp4: true, ..interface("eth0") }]));
    let expected = r#"network:
  version: 2
  renderer: networkd
  ethernets:
    eth0:
      match:
        macaddress: "11:22:33:44:55:01"
      dhcp4: true
"#;
    assert_eq!(text, expected);
}

#[test]
fn a_gateway_is_a_route_only_beside_a_static_address() {
    let gateways = Interface {
        gateway4: Some("10.0.0.1".to_owned()),
        gateway6: Some("fd00::1".to_owned()),
        addresses6: texts(&["fd00::5/64"]),
        ..interface("eth0")
    };
    let text = network_config(&with(vec![gateways]));
    assert!(text.contains("::/0") && text.contains("via: \"fd00::1\"\n"), "{text}");
    let asking = Interface { dhcp4: true, gateway4: Some("10.0.0.1".to_owned()), ..interface("eth0") };
    let text = network_config(&with(vec![asking]));
    assert!(!text.contains("routes"), "{text}");
}

#[test]
fn slaac_makes_the_address_where_the_bridge_is_known_and_listens_otherwise() {
    let listening = Interface { slaac: true, ..interface("eth0") };
    let known = Interface { node_address6: Some("2001:db8::1/64".to_owned()), ..listening.clone() };
    let text = network_config(&with(vec![listening]));
    assert!(!text.contains("dhcp") && !text.contains("addresses"), "{text}");
    let text = network_config(&with(vec![known]));
    assert!(text.contains("2001:db8::1322:33ff:fe44:5501/64"), "{text}");
    assert!(text.contains("via: \"2001:db8::1\"\n"), "{text}");
}

#[test]
fn resolvers_stand_under_every_interface() {
    let mut input = with(vec![interface("eth0"), interface("eth1")]);
    input.network.name_servers = texts(&["10.0.0.2"]);
    input.network.search_domains = texts(&["example.com"]);
    assert_eq!(network_config(&input).matches("10.0.0.2").count(), 2);
}

#[test]
fn two_interfaces_of_one_name_are_refused() {
    let error = render(&with(vec![interface("eth0"), interface("eth0")]), &Templates::default()).unwrap_err();
    assert!(matches!(error, Error::DuplicateInterface { name } if name == "eth0"));
}

#[test]
fn an_interface_of_which_nothing_is_said_asks_for_an_address() {
    let text = network_config(&with(vec![interface("eth0")]));
    assert!(text.contains("dhcp4: true"), "{text}");
}

#[test]
fn version_1_lists_the_same_interfaces() {
    let fixed = Interface {
        addresses4: texts(&["10.0.0.5/24"]),
        gateway4: Some("10.0.0.1".to_owned()),
        slaac: true,
        mtu: 9000,
        ..interface("eth0")
    };
    let mut input = with(vec![fixed, Interface { dhcp4: true, dhcp6: true, ..interface("eth1") }]);
    input.network_config_version = NetworkConfigVersion::One;
    input.network.name_servers = texts(&["10.0.0.2"]);
    input.network.search_domains = texts(&["example.com"]);
    let expected = r#"version: 1
config:
- type: physical
  name: eth0
  mac_address: "11:22:33:44:55:01"
  mtu: 9000
  subnets:
  - type: static
    address: "10.0.0.5/24"
    gateway: "10.0.0.1"
  - type: ipv6_slaac
- type: physical
  name: eth1
  mac_address: "11:22:33:44:55:01"
  subnets:
  - type: dhcp
  - type: dhcp6
- type: nameserver
  address:
  - "10.0.0.2"
  search:
  - "example.com"
"#;
    assert_eq!(network_config(&input), expected);
}
