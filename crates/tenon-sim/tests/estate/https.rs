//! The same estate over a real socket: TLS, reason phrases, connection habits.

use std::sync::Arc;

use axum::body::Body;
use http::{Request, header};
use http_body_util::BodyExt;
use hyper::client::conn::http1;
use hyper::ext::ReasonPhrase;
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tenon_sim::{Estate, EstateConfig, FaultEffect, FaultKind, FaultMatch, FaultRule, FaultSpec, Server, Tls};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use crate::estate::bench::TOKEN;

pub(crate) async fn serve(estate: &Estate, tls: &Tls) -> Server {
    estate.serve(TcpListener::bind("127.0.0.1:0").await.unwrap(), tls.clone())
}

pub(crate) async fn connect(server: &Server, tls: &Tls) -> std::io::Result<http1::SendRequest<Body>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(tls.ca_pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider);
    let config =
        config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(server.local_addr()).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    Ok(sender)
}

fn get(path: &str) -> Request<Body> {
    let builder = Request::builder().uri(format!("/api2/json{path}")).header(header::HOST, "localhost");
    builder.header(header::AUTHORIZATION, TOKEN).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn https_carries_reason_phrases_and_keeps_good_connections() {
    let (estate, tls) = (Estate::new(EstateConfig::default()), Tls::self_signed().unwrap());
    let server = serve(&estate, &tls).await;
    let mut client = connect(&server, &tls).await.unwrap();
    for _ in 0..2 {
        let response = client.send_request(get("/version")).await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body().collect().await.unwrap();
    }
    let response = client.send_request(get("/nodes/pve1/qemu/1234/config")).await.unwrap();
    let text = "Configuration file 'nodes/pve1/qemu-server/1234.conf' does not exist";
    assert_eq!(response.extensions().get::<ReasonPhrase>().unwrap().as_bytes(), text.as_bytes());
    assert_eq!((response.status().as_u16(), &response.headers()["connection"]), (500, &"close".parse().unwrap()));
    assert_eq!(tls.fingerprint().len(), 95);
    server.shutdown().await;
}

#[tokio::test]
async fn a_lost_reply_closes_the_connection() {
    let (estate, tls) = (Estate::new(EstateConfig::default()), Tls::self_signed().unwrap());
    let server = serve(&estate, &tls).await;
    estate.fail_next(FaultSpec::new("GET", "/version", FaultKind::DropReply));
    let mut client = connect(&server, &tls).await.unwrap();
    assert!(client.send_request(get("/version")).await.is_err());
    server.shutdown().await;
}

#[tokio::test]
async fn a_cut_answer_closes_the_connection_in_its_body() {
    let (estate, tls) = (Estate::new(EstateConfig::default()), Tls::self_signed().unwrap());
    let server = serve(&estate, &tls).await;
    estate.add_fault(FaultRule::new(FaultMatch::call("GET", "/version"), FaultEffect::CutBody));
    let mut client = connect(&server, &tls).await.unwrap();
    let response = client.send_request(get("/version")).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers().contains_key("content-length"));
    assert!(response.into_body().collect().await.is_err());
    server.shutdown().await;
}

#[tokio::test]
async fn a_call_that_is_never_answered_keeps_its_connection_open() {
    let (estate, tls) = (Estate::new(EstateConfig::default()), Tls::self_signed().unwrap());
    let server = serve(&estate, &tls).await;
    estate.add_fault(FaultRule::new(FaultMatch::call("GET", "/version"), FaultEffect::TimeoutAfter));
    let mut client = connect(&server, &tls).await.unwrap();
    let mut asking = Box::pin(client.send_request(get("/version")));
    // The call has arrived and been executed by the time another one has been answered.
    while estate.ledger().is_empty() {
        assert!(futures::poll!(&mut asking).is_pending());
        tokio::task::yield_now().await;
    }
    let mut other = connect(&server, &tls).await.unwrap();
    assert_eq!(other.send_request(get("/nodes")).await.unwrap().status(), 200);
    assert!(futures::poll!(&mut asking).is_pending());
    server.shutdown().await;
}

#[tokio::test]
async fn an_expired_certificate_is_refused_by_the_client() {
    let (estate, tls) = (Estate::new(EstateConfig::default()), Tls::expired().unwrap());
    let server = serve(&estate, &tls).await;
    let error = connect(&server, &tls).await.unwrap_err();
    assert!(error.to_string().contains("expired"), "{error}");
    server.shutdown().await;
}

#[tokio::test]
async fn the_hundredth_answer_closes_the_connection() {
    let (estate, tls) = (Estate::new(EstateConfig::default()), Tls::self_signed().unwrap());
    let server = serve(&estate, &tls).await;
    let mut client = connect(&server, &tls).await.unwrap();
    let mut closes = Vec::new();
    for n in 1..=100 {
        let response = client.send_request(get("/version")).await.unwrap();
        if response.headers()["connection"] == "close" {
            closes.push(n);
        }
        response.into_body().collect().await.unwrap();
    }
    assert_eq!(closes, [100]);
    server.shutdown().await;
}

#[tokio::test]
async fn an_upload_ends_at_its_closing_boundary() {
    let (estate, tls) = (Estate::new(EstateConfig::default()), Tls::self_signed().unwrap());
    let server = serve(&estate, &tls).await;
    let mut client = connect(&server, &tls).await.unwrap();
    let field = "--b0\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\niso\r\n";
    let file =
        "--b0\r\nContent-Disposition: form-data; name=\"filename\"; filename=\"a.iso\"\r\n\r\nseed\r\n--b0--\r\n";
    let sent = format!("{field}{file}");
    let announced = sent.len() + 100;
    // The rest of what is announced never comes.
    let frames = futures::stream::iter([Ok::<_, std::io::Error>(sent)]);
    let body = Body::from_stream(futures::StreamExt::chain(frames, futures::stream::pending()));
    let request = Request::post("/api2/json/nodes/pve1/storage/local/upload")
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, TOKEN)
        .header(header::CONTENT_TYPE, "multipart/form-data; boundary=b0")
        .header(header::CONTENT_LENGTH, announced);
    let response = client.send_request(request.body(body).unwrap()).await.unwrap();
    assert_eq!((response.status().as_u16(), &response.headers()["connection"]), (200, &"close".parse().unwrap()));
    server.shutdown().await;
}
