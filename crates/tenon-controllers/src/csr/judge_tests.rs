//! Is each certificate approved that should be, and each that should not be refused for its own reason?

use std::collections::BTreeSet;
use std::net::IpAddr;

use rcgen::{DnType, SanType};

use super::judge::{ClaimFacts, Known, KnownAddresses, KnownClaim, KnownNode, Verdict, Wait, judge};
use super::refusal::Refusal;
use super::request::{ParsedRequest, Signer};
use super::test_requests::{Ask, dns, subject};

const NODE: &str = "default-x7";

fn facts() -> ClaimFacts {
    ClaimFacts { name: NODE.to_owned(), has_token: true, is_deleting: false, has_vm: true, is_registered: false }
}

/// A VM that was started, and whose node has not joined.
fn started() -> Known {
    let addresses = KnownAddresses::Unknown("not asked".to_owned());
    Known { claim: KnownClaim::Ours(facts()), node: KnownNode::Absent, addresses }
}

fn with(claim: ClaimFacts) -> Known {
    Known { claim: KnownClaim::Ours(claim), ..started() }
}

/// A node that joined, with these addresses.
fn joined(addresses: &[&str]) -> Known {
    let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
    Known {
        node: KnownNode::Ours,
        addresses: KnownAddresses::These(addresses),
        ..with(ClaimFacts { is_registered: true, ..facts() })
    }
}

fn verdict(ask: &Ask, known: &Known) -> Verdict {
    judge(&ParsedRequest::read(ask.signer, &ask.object("a")).unwrap(), known)
}

fn refused(ask: &Ask, known: &Known) -> Refusal {
    match verdict(ask, known) {
        Verdict::Refuse(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

fn first() -> Ask {
    Ask::first("abcdef", NODE)
}

fn serving(addresses: &[&str]) -> Ask {
    Ask::serving(NODE, addresses)
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn the_first_certificate_of_a_started_vm_is_approved() {
    assert_eq!(verdict(&first(), &started()), Verdict::Approve);
    let rsa = Ask { usages: vec!["key encipherment", "digital signature", "client auth"], ..first() };
    assert_eq!(verdict(&rsa, &started()), Verdict::Approve);
}

#[test]
fn what_is_not_of_our_claims_is_left_to_others() {
    let nobody = Known { claim: KnownClaim::None, ..started() };
    let stranger = Ask { groups: vec!["system:bootstrappers", "system:bootstrappers:kubeadm"], ..first() };
    for ask in [stranger, Ask::renewal(NODE), serving(&["10.0.0.5"])] {
        assert_eq!(verdict(&ask, &nobody), Verdict::NotOurs);
    }
    // The Go provider's tokens have the same group; ours may be shown by the watch in a moment.
    assert_eq!(verdict(&first(), &nobody), Verdict::Wait(Wait::Claim));
}

#[test]
fn a_token_gets_no_certificate_for_another_claims_name() {
    for name in ["default-x8", "", "default-x7 ", "DEFAULT-X7"] {
        let wanted = format!("system:node:{name}");
        let refusal = refused(&Ask { subject: subject(name), ..first() }, &started());
        assert_eq!(refusal, Refusal::AnotherName { wanted, allowed: format!("system:node:{NODE}") });
    }
}

#[test]
fn a_claim_gets_no_second_node() {
    let registered = with(ClaimFacts { is_registered: true, ..facts() });
    assert_eq!(refused(&first(), &registered), Refusal::SecondNode);
    for node in [KnownNode::Ours, KnownNode::Joining, KnownNode::Stranger("x".to_owned())] {
        assert_eq!(refused(&first(), &Known { node, ..started() }), Refusal::SecondNode);
    }
}

#[test]
fn a_token_without_our_group_is_refused() {
    let ask = Ask { groups: vec!["system:bootstrappers", "system:authenticated"], ..first() };
    assert_eq!(refused(&ask, &started()), Refusal::WrongGroup(tenon_api::names::BOOTSTRAP_GROUP));
    let ask = Ask { groups: vec!["system:authenticated"], ..Ask::renewal(NODE) };
    assert_eq!(refused(&ask, &joined(&[])), Refusal::WrongGroup("system:nodes"));
}

#[test]
fn usages_are_those_of_the_purpose_and_no_others() {
    let wrong: [&[&'static str]; 6] = [
        &[],
        &["client auth"],
        &["digital signature"],
        &["digital signature", "key encipherment"],
        &["digital signature", "server auth"],
        &["digital signature", "client auth", "cert sign"],
    ];
    for usages in wrong {
        let refusal = refused(&Ask { usages: usages.to_vec(), ..first() }, &started());
        let wanted: BTreeSet<String> = usages.iter().map(|usage| (*usage).to_owned()).collect();
        assert_eq!(refusal, Refusal::WrongUsages { wanted, purpose: "client auth" });
    }
    for usages in [vec!["digital signature", "client auth"], vec!["digital signature", "server auth", "client auth"]] {
        let refusal = refused(&Ask { usages, ..serving(&["10.0.0.5"]) }, &joined(&["10.0.0.5"]));
        assert!(matches!(refusal, Refusal::WrongUsages { purpose: "server auth", .. }), "{refusal:?}");
    }
}

#[test]
fn a_subject_is_in_the_organization_of_nodes_and_in_no_other() {
    for organization in ["system:masters", "system:nodes ", ""] {
        let mut ask = first();
        ask.subject = vec![(DnType::OrganizationName, organization.to_owned()), subject(NODE)[1].clone()];
        assert_eq!(refused(&ask, &started()), Refusal::WrongOrganizations(vec![organization.to_owned()]));
        let ask = Ask { subject: ask.subject, ..serving(&["10.0.0.5"]) };
        assert!(matches!(refused(&ask, &joined(&["10.0.0.5"])), Refusal::WrongOrganizations(_)));
    }
    let mut none = first();
    none.subject.remove(0);
    assert_eq!(refused(&none, &started()), Refusal::WrongOrganizations(vec![]));
}

#[test]
fn two_organizations_are_refused() {
    let mut parsed = ParsedRequest::read(Signer::Client, &first().object("a")).unwrap();
    let organizations = vec!["system:nodes".to_owned(), "system:masters".to_owned()];
    parsed.wanted.as_mut().unwrap().organizations.clone_from(&organizations);
    assert_eq!(judge(&parsed, &started()), Verdict::Refuse(Refusal::WrongOrganizations(organizations)));
}

#[test]
fn a_client_certificate_has_no_alternative_names() {
    let uri = SanType::URI("spiffe://a".try_into().unwrap());
    for name in [dns(NODE), SanType::IpAddress(ip("10.0.0.5")), uri] {
        let ask = Ask { names: vec![name.clone()], ..first() };
        assert_eq!(refused(&ask, &started()), Refusal::NamesInClientCertificate);
        let ask = Ask { names: vec![name], ..Ask::renewal(NODE) };
        assert_eq!(refused(&ask, &joined(&["10.0.0.5"])), Refusal::NamesInClientCertificate);
    }
}

#[test]
fn a_token_counts_only_for_a_claim_that_lives_and_has_a_vm() {
    assert_eq!(refused(&first(), &with(ClaimFacts { has_token: false, ..facts() })), Refusal::TokenNotOfClaim);
    assert_eq!(refused(&first(), &with(ClaimFacts { is_deleting: true, ..facts() })), Refusal::ClaimDeleted);
    assert_eq!(refused(&first(), &with(ClaimFacts { has_vm: false, ..facts() })), Refusal::NoVm);
}

#[test]
fn a_token_gets_no_serving_certificate() {
    let first = first();
    let ask = Ask { user: first.user, groups: first.groups, ..serving(&["10.0.0.5"]) };
    assert_eq!(refused(&ask, &started()), Refusal::ServingForToken);
    assert_eq!(refused(&ask, &joined(&["10.0.0.5"])), Refusal::ServingForToken);
}

#[test]
fn a_request_that_cannot_be_read_is_refused() {
    let ask = first();
    let parsed = ParsedRequest::read(ask.signer, &ask.object_with("a", b"x")).unwrap();
    let why = "it is not one PEM block of a certificate request";
    assert_eq!(judge(&parsed, &started()), Verdict::Refuse(Refusal::Unreadable(why)));
}

#[test]
fn a_node_renews_its_own_certificate_also_while_it_is_drained() {
    let ask = Ask::renewal(NODE);
    assert_eq!(verdict(&ask, &joined(&[])), Verdict::Approve);
    let drained = Known { claim: KnownClaim::Ours(ClaimFacts { is_deleting: true, ..facts() }), ..joined(&[]) };
    assert_eq!(verdict(&ask, &drained), Verdict::Approve);
    let other = refused(&Ask { subject: subject("default-x8"), ..ask }, &joined(&[]));
    assert!(matches!(other, Refusal::AnotherName { .. }), "{other:?}");
}

#[test]
fn a_serving_certificate_names_the_node_and_addresses_of_its_vm() {
    let known = joined(&["10.0.0.5", "fd00::5"]);
    for addresses in [&["10.0.0.5"][..], &["fd00::5"], &["10.0.0.5", "fd00::5"], &[]] {
        assert_eq!(verdict(&serving(addresses), &known), Verdict::Approve);
    }
    let only_address = Ask { names: vec![SanType::IpAddress(ip("10.0.0.5"))], ..serving(&[]) };
    assert_eq!(verdict(&only_address, &known), Verdict::Approve);
}

#[test]
fn an_address_that_is_not_the_vms_is_refused() {
    assert_eq!(refused(&serving(&["10.0.0.6"]), &joined(&["10.0.0.5"])), Refusal::UnknownAddress(ip("10.0.0.6")));
    let both = serving(&["10.0.0.5", "10.0.0.6"]);
    assert_eq!(refused(&both, &joined(&["10.0.0.5"])), Refusal::UnknownAddress(ip("10.0.0.6")));
    assert_eq!(refused(&both, &joined(&[])), Refusal::UnknownAddress(ip("10.0.0.5")));
}

#[test]
fn addresses_nobody_knows_are_waited_for() {
    let unknown = KnownAddresses::Unknown("no agent".to_owned());
    let known = Known { addresses: unknown, ..joined(&[]) };
    assert_eq!(verdict(&serving(&["10.0.0.5"]), &known), Verdict::Wait(Wait::Addresses("no agent".to_owned())));
    assert_eq!(verdict(&serving(&[]), &known), Verdict::Approve, "only the name is asked for");
    let wrong = Ask { names: vec![dns("api.example.com")], ..serving(&["10.0.0.5"]) };
    assert!(matches!(verdict(&wrong, &known), Verdict::Refuse(_)), "what is wrong anyway waits for nothing");
}

#[test]
fn other_names_have_no_place_in_a_serving_certificate() {
    let known = joined(&["10.0.0.5"]);
    for name in ["api.example.com", "default-x8", "*"] {
        let ask = Ask { names: vec![dns(NODE), dns(name)], ..serving(&[]) };
        assert_eq!(refused(&ask, &known), Refusal::AnotherDnsName(name.to_owned()));
    }
    assert_eq!(refused(&Ask { names: vec![], ..serving(&[]) }, &known), Refusal::NoNames);
    for other in [SanType::URI("spiffe://a".try_into().unwrap()), SanType::Rfc822Name("a@b.c".try_into().unwrap())] {
        assert_eq!(refused(&Ask { names: vec![dns(NODE), other], ..serving(&[]) }, &known), Refusal::OtherNames);
    }
}

#[test]
fn a_node_must_have_joined_from_the_claims_vm() {
    for node in [KnownNode::Absent, KnownNode::Joining] {
        let known = Known { node, ..joined(&["10.0.0.5"]) };
        assert_eq!(verdict(&serving(&["10.0.0.5"]), &known), Verdict::Wait(Wait::Node(NODE.to_owned())));
        assert_eq!(verdict(&Ask::renewal(NODE), &known), Verdict::Wait(Wait::Node(NODE.to_owned())));
    }
    let stranger = Known { node: KnownNode::Stranger("why".to_owned()), ..joined(&["10.0.0.5"]) };
    for ask in [serving(&["10.0.0.5"]), Ask::renewal(NODE)] {
        assert_eq!(refused(&ask, &stranger), Refusal::AnotherMachine("why".to_owned()));
    }
}

#[test]
fn what_a_stranger_wrote_is_shown_in_one_short_line() {
    let ask = Ask { subject: subject(&format!("a\nb{}", "x".repeat(1000))), ..first() };
    let said = refused(&ask, &started()).sentence(NODE);
    assert!(said.len() < 450 && !said.contains('\n') && said.contains("system:node:a?bxxx"), "{said}");
}
