//! Whom the client believes, over real HTTPS.

use std::time::Duration;

use bytes::Bytes;
use tenon_pve::{Cause, Client, Endpoint, Token, Transport, Trust};
use tenon_sim::{Estate, EstateConfig, Server, TemplateSpec, Tls};

use crate::estate::{host, id, request};

const SECRET: &str = "11111111-2222-3333-4444-555555555555";

struct Site {
    server: Server,
    trust_ca: Trust,
    trust_pin: Trust,
}

async fn site(tls: Tls) -> Site {
    let estate = Estate::new(EstateConfig::default());
    let template =
        TemplateSpec { host: "pve1".to_owned(), vmid: 9000, name: "debian".to_owned(), ..TemplateSpec::default() };
    estate.add_template(&template).unwrap();
    let (trust_ca, trust_pin) =
        (Trust::Authority(tls.ca_pem().into()), Trust::Pinned(tls.fingerprint().parse().unwrap()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    Site { server: estate.serve(listener, tls), trust_ca, trust_pin }
}

fn client(addresses: &[String], trust: &Trust) -> Client {
    let endpoints = addresses.iter().map(|address| Endpoint::new(&format!("https://{address}")).unwrap()).collect();
    Client::new(endpoints, Transport::https(trust).unwrap(), Token::new("tenon@pve!sim", SECRET).unwrap())
}

#[tokio::test]
async fn the_clusters_authority_its_fingerprint_or_anybody_are_believed_as_asked() {
    let site = site(Tls::self_signed().unwrap()).await;
    let address = [site.server.local_addr().to_string()];
    for trust in [&site.trust_ca, &site.trust_pin, &Trust::Anybody] {
        client(&address, trust).version().await.unwrap_or_else(|error| panic!("{trust:?}: {}", error.full_message()));
    }
    let error = client(&address, &Trust::System).version().await.unwrap_err();
    assert!(matches!(error.cause(), Cause::NotSent(_)), "{}", error.full_message());
    let other = Trust::Pinned("00".repeat(32).parse().unwrap());
    let error = client(&address, &other).version().await.unwrap_err();
    assert!(error.is_not_sent() && error.full_message().contains("not the pinned one"), "{}", error.full_message());
    site.server.shutdown().await;
}

#[tokio::test]
async fn an_expired_certificate_is_refused_and_named() {
    let site = site(Tls::expired().unwrap()).await;
    let address = [site.server.local_addr().to_string()];
    let error = client(&address, &site.trust_ca).version().await.unwrap_err();
    assert!(error.is_not_sent(), "{}", error.full_message());
    assert!(error.full_message().to_lowercase().contains("expired"), "{}", error.full_message());
    site.server.shutdown().await;
}

#[tokio::test]
async fn the_next_endpoint_is_asked_when_the_first_is_not_there() {
    let site = site(Tls::self_signed().unwrap()).await;
    let dead = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = dead.local_addr().unwrap().to_string();
    drop(dead);
    let addresses = [gone.clone(), site.server.local_addr().to_string()];
    client(&addresses, &site.trust_ca).version().await.unwrap();
    let error = client(&[gone], &site.trust_ca).version().await.unwrap_err();
    assert!(error.is_not_sent(), "{}", error.full_message());
    site.server.shutdown().await;
}

#[tokio::test]
async fn errors_keep_proxmoxs_words_over_the_wire_and_uploads_say_their_length() {
    let site = site(Tls::self_signed().unwrap()).await;
    let client = client(&[site.server.local_addr().to_string()], &site.trust_ca);
    let error = client.vm_config(&host(), id(7777)).await.unwrap_err();
    assert_eq!(
        error.full_message(),
        "cannot read the configuration of VM 7777 on host pve1: Configuration file 'nodes/pve1/qemu-server/7777.conf' does not exist"
    );
    let task = client.upload_iso(&host(), "shared", "x.iso", &Bytes::from(vec![1; 300_000])).await.unwrap();
    client.await_task(&task, Duration::from_secs(30)).await.unwrap();
    let task = client.clone_vm(&host(), &request(id(20_001))).await.unwrap();
    client.await_task(&task, Duration::from_secs(30)).await.unwrap();
    site.server.shutdown().await;
}
