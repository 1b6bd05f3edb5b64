//! A guest with a seed that would not join a real cluster does not join this one either, and says why.

use std::time::Duration;

use anyhow::ensure;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::Api;
use tenon_cloudinit::{Bootstrap, Seed};
use tenon_sim::{Estate, EstateConfig, Guests};
use testbed::Testbed;

use crate::bench::{add_running_vm, bootstrap_token, eventually, plain_seed, quick_guests, shared_testbed};

const BOOTSTRAP_PATH: &str = "/etc/kubernetes/bootstrap-kubelet.conf";
/// How long nobody may have joined after all have said why.
const WATCHED: Duration = Duration::from_secs(3);

/// A seed that goes wrong, and what its guest is to say.
struct Case {
    name: &'static str,
    says: &'static str,
    spoil: fn(&mut Bootstrap),
    spoil_seed: fn(&mut Seed),
}

fn keep(_: &mut Bootstrap) {}

fn keep_seed(_: &mut Seed) {}

fn cases() -> Vec<Case> {
    let usual = || Case { name: "", says: "", spoil: keep, spoil_seed: keep_seed };
    vec![
        Case {
            name: "wrong-path",
            says: "/etc/kubernetes/elsewhere.conf, named by --bootstrap-kubeconfig, does not exist",
            spoil_seed: |seed| {
                replace(seed, &format!("={BOOTSTRAP_PATH}"), "=/etc/kubernetes/elsewhere.conf");
            },
            ..usual()
        },
        Case {
            name: "no-kubelet-config",
            says: "/nowhere.yaml, named by --config, does not exist",
            spoil_seed: |seed| replace(seed, "--config=/var/lib/kubelet/config.yaml", "--config=/nowhere.yaml"),
            ..usual()
        },
        Case {
            name: "no-reset",
            says: "kubelet.service has 2 commands",
            spoil_seed: |seed| {
                let text = user_data(seed);
                let lines: Vec<&str> = text.lines().filter(|line| line.trim() != "ExecStart=").collect();
                seed.user_data = lines.join("\n").into_bytes();
            },
            ..usual()
        },
        Case {
            name: "wrong-ca",
            says: "UnknownIssuer",
            spoil: |b| b.ca_pem = other_ca().unwrap_or_default(),
            ..usual()
        },
        Case { name: "no-server", says: "refused", spoil: |b| b.api_server = "https://127.0.0.1:1".into(), ..usual() },
        Case {
            name: "unknown-token",
            says: "Unauthorized",
            spoil: |bootstrap| {
                if let Ok(token) = "nobody.0123456789abcdef".parse() {
                    bootstrap.token = token;
                }
            },
            ..usual()
        },
        Case {
            name: "expired-token",
            says: "Unauthorized",
            spoil: |bootstrap| {
                if let Ok(token) = "guest4.0123456789abcdef".parse() {
                    bootstrap.token = token;
                }
            },
            ..usual()
        },
    ]
}

/// Replaces what must be there once.
fn replace(seed: &mut Seed, old: &str, new: &str) {
    let text = user_data(seed);
    assert_eq!(text.matches(old).count(), 1, "{old} in {text}");
    seed.user_data = text.replace(old, new).into_bytes();
}

/// An authority with the same name as none the server knows.
fn other_ca() -> anyhow::Result<String> {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    Ok(params.self_signed(&rcgen::KeyPair::generate()?)?.pem())
}

#[tokio::test]
async fn a_seed_that_cannot_join_never_joins_and_its_guest_says_why() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let admin = testbed.admin().await?;
    let token = bootstrap_token(&admin, "guest3", "2099-01-01T00:00:00Z").await?;
    bootstrap_token(&admin, "guest4", "2001-01-01T00:00:00Z").await?;
    let estate = Estate::new(EstateConfig::default());
    let guests = Guests::start(&estate, quick_guests());
    let cases = cases();
    for (vmid, case) in (20_100..).zip(&cases) {
        add_running_vm(&estate, vmid, case.name, Some(&spoilt_seed(testbed, &token, (vmid, case))?))?;
    }
    for (vmid, case) in (20_100..).zip(&cases) {
        let what = format!("{} says `{}`", case.name, case.says);
        let told = eventually(&what, async || {
            let log = guests.guest_log(vmid);
            Ok(log.iter().any(|line| line.contains(case.says)).then_some(()))
        });
        let said = told.await;
        ensure!(said.is_ok(), "{said:?}; it says {:#?}", guests.guest_log(vmid));
    }
    let watched = tokio::time::timeout(WATCHED, until_one_joins(&admin, &cases)).await;
    assert!(watched.is_err(), "{watched:?}");
    // They all run nevertheless: a VM does not end because its kubelet fails.
    assert_eq!(guests.running().len(), cases.len());
    guests.shutdown().await;
    Ok(())
}

fn spoilt_seed(testbed: &Testbed, token: &str, (vmid, case): (u32, &Case)) -> anyhow::Result<Seed> {
    let (api_server, ca_pem) = (testbed.server().to_owned(), testbed.ca_pem());
    let mut bootstrap = Bootstrap { api_server, ca_pem, token: token.parse()? };
    (case.spoil)(&mut bootstrap);
    let mut seed = plain_seed(vmid, case.name, bootstrap)?;
    (case.spoil_seed)(&mut seed);
    Ok(seed)
}

async fn until_one_joins(admin: &Client, cases: &[Case]) -> anyhow::Result<&'static str> {
    let nodes: Api<Node> = Api::all(admin.clone());
    loop {
        for case in cases {
            if nodes.get_opt(case.name).await?.is_some() {
                return Ok(case.name);
            }
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn user_data(seed: &Seed) -> String {
    String::from_utf8_lossy(&seed.user_data).into_owned()
}
