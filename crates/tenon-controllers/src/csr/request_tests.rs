//! Is a request read as it was written, and not read at all where programs could differ?

use std::net::IpAddr;

use rcgen::{DnType, SanType};

use super::request::{ParsedRequest, Requester, Signer, Wanted};
use super::test_requests::{Ask, dns};

fn read(ask: &Ask) -> ParsedRequest {
    ParsedRequest::read(ask.signer, &ask.object("a")).unwrap()
}

fn why(ask: &Ask, request: &[u8]) -> &'static str {
    ParsedRequest::read(ask.signer, &ask.object_with("a", request)).unwrap().wanted.unwrap_err()
}

#[test]
fn what_a_kubelet_asks_for_is_read() {
    let first = read(&Ask::first("abcdef", "n"));
    assert_eq!((first.signer, &first.requester), (Signer::Client, &Requester::Token("abcdef".to_owned())));
    let wanted = Wanted {
        common_name: "system:node:n".to_owned(),
        organizations: vec!["system:nodes".to_owned()],
        ..Wanted::default()
    };
    assert_eq!(first.wanted, Ok(wanted.clone()));
    assert!(first.groups.contains("system:bootstrappers") && first.usages.contains("client auth"));
    let serving = read(&Ask::serving("n", &["10.0.0.5", "fd00::5", "::ffff:10.0.0.6"]));
    assert_eq!(serving.requester, Requester::Node("n".to_owned()));
    let addresses = ["10.0.0.5", "fd00::5", "10.0.0.6"].map(|text| text.parse::<IpAddr>().unwrap());
    let names = Wanted { dns_names: ["n".to_owned()].into(), addresses: addresses.into(), ..wanted };
    assert_eq!(serving.wanted, Ok(names));
}

#[test]
fn names_of_other_kinds_are_counted() {
    let mut ask = Ask::serving("n", &[]);
    ask.names.push(SanType::Rfc822Name("a@example.com".try_into().unwrap()));
    ask.names.push(SanType::URI("spiffe://example.com/a".try_into().unwrap()));
    assert_eq!(read(&ask).wanted.unwrap().other_names, 2);
}

#[test]
fn only_tokens_and_nodes_ask_and_only_this_signer_is_asked() {
    let mut ask = Ask::first("abcdef", "n");
    assert_eq!(ParsedRequest::read(Signer::Serving, &ask.object("a")), None);
    for user in ["admin", "system:serviceaccount:a:b", "system:nodeless", ""] {
        ask.user = user.to_owned();
        assert_eq!(ParsedRequest::read(ask.signer, &ask.object("a")), None, "{user}");
    }
}

#[test]
fn a_subject_has_one_common_name_and_organizations_and_nothing_else() {
    let mut ask = Ask::first("abcdef", "n");
    ask.subject = vec![(DnType::OrganizationName, "system:nodes".to_owned())];
    assert_eq!(read(&ask).wanted, Err("its subject has not exactly one common name"));
    ask.subject.push((DnType::CommonName, "system:node:n".to_owned()));
    ask.subject.push((DnType::OrganizationalUnitName, "x".to_owned()));
    assert_eq!(read(&ask).wanted, Err("its subject has more than a common name and organizations"));
}

#[test]
fn a_request_is_one_pem_block_with_one_request_in_it() {
    let ask = Ask::first("abcdef", "n");
    let (own, other) = (ask.pem(), Ask::first("abcdef", "other").pem());
    let block = "it is not one PEM block of a certificate request";
    assert_eq!(why(&ask, b""), block);
    assert_eq!(why(&ask, b"\xff"), block);
    assert_eq!(why(&ask, format!("x\n{own}").as_bytes()), block);
    assert_eq!(why(&ask, format!("{own}\nx").as_bytes()), block);
    assert_eq!(why(&ask, format!("{other}{own}").as_bytes()), "its PEM block is not base64");
    let headed = own.replacen("REQUEST-----\n", "REQUEST-----\nProc-Type: 4\n\n", 1);
    assert_eq!(why(&ask, headed.as_bytes()), "its PEM block is not base64");
    let cut = "-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n";
    assert_eq!(why(&ask, cut.as_bytes()), "it is not a PKCS #10 certificate request");
    assert!(
        ParsedRequest::read(ask.signer, &ask.object_with("a", own.replace('\n', "\r\n").as_bytes()))
            .unwrap()
            .wanted
            .is_ok()
    );
}

#[test]
fn what_follows_a_request_is_not_ignored() {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let ask = Ask::serving("n", &["10.0.0.5"]);
    let pem = ask.pem();
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let mut der = STANDARD.decode(body).unwrap();
    der.push(0);
    let longer =
        format!("-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----", STANDARD.encode(&der));
    assert_eq!(why(&ask, longer.as_bytes()), "something follows the PKCS #10 certificate request");
}

/// Whoever has a token writes these bytes: nothing in them may end the approver.
#[test]
fn no_bytes_make_the_reader_panic() {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let ask = Ask { names: vec![dns("n")], ..Ask::serving("n", &["10.0.0.5", "fd00::5"]) };
    let pem = ask.pem();
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let der = STANDARD.decode(body).unwrap();
    for at in 0..der.len() {
        for value in [0, 1, 0x30, 0x7f, 0x80, 0x82, 0xa0, 0xff] {
            let mut broken = der.clone();
            broken[at] = value;
            let text = STANDARD.encode(&broken);
            let text = format!("-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----");
            drop(ParsedRequest::read(ask.signer, &ask.object_with("a", text.as_bytes())));
        }
    }
}
