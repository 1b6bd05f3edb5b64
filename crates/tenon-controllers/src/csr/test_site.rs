//! A claim whose VM runs, and the approver beside it, on the embedded API server and the simulator. The approver's own calls to the
//! API server can be refused, or hang.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::events::v1::Event;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;
use tenon_api::ProxmoxNodeClass;
use tenon_sim::{Cluster, ClusterConfig};

use super::run::run;
use super::test_requests::Ask;
use crate::claim::test_stage::ClaimStage;
use crate::claim::{make_token, recorded_token};
use crate::settings::{CsrApprover, Settings};
use crate::stop::stop;

pub(super) const NODE: &str = "default-x7";

/// Method and path.
pub(super) type Call<'a> = (&'a str, &'a str);

/// What becomes of a call to the Kubernetes API.
pub(super) enum Fault {
    None,
    Forbidden,
    Hangs,
}

fn faulty(client: &Client, fault: impl Fn(&Call<'_>) -> Fault + Clone + Send + Sync + 'static) -> Client {
    let client = client.clone();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (client, fault) = (client.clone(), fault(&(request.method().as_str(), request.uri().path())));
        async move {
            match fault {
                Fault::None => client.send(request).await,
                Fault::Hangs => std::future::pending().await,
                Fault::Forbidden => {
                    let told = json!({ "kind": "Status", "status": "Failure", "message": "may not", "code": 403 });
                    let body = kube::client::Body::from(told.to_string().into_bytes());
                    Ok(http::Response::builder().status(403).body(body).unwrap())
                }
            }
        }
    });
    Client::new(service, "default")
}

pub(super) struct Site {
    pub(super) stage: ClaimStage,
    cluster: Cluster,
    stopper: crate::stop::Stopper,
    pub(super) approver: tokio::task::JoinHandle<()>,
}

impl Site {
    /// A claim whose VM runs, and the approver.
    pub(super) async fn new() -> Site {
        Site::with(without_stock_approver()).await
    }

    pub(super) async fn with(config: ClusterConfig) -> Site {
        Site::with_faults(config, |_| Fault::None).await
    }

    /// One whose approver has trouble with the Kubernetes API.
    pub(super) async fn with_faults(
        config: ClusterConfig,
        fault: impl Fn(&Call<'_>) -> Fault + Clone + Send + Sync + 'static,
    ) -> Site {
        let settings = Settings {
            csr_approver: CsrApprover::Tenon,
            cluster_endpoint: Some("https://a:6443".to_owned()),
            ..Settings::default()
        };
        let (mut stage, cluster) = ClaimStage::on(config, settings).await;
        stage.add_launched(NODE, json!({})).await;
        drop(make_token(&stage.context, &stage.claim(NODE).await).await.unwrap());
        stage.settle().await;
        Arc::get_mut(&mut stage.context).unwrap().workload = faulty(&stage.client, fault);
        let (stopper, stop) = stop();
        let approver = tokio::spawn(run(stage.context.clone(), stop));
        Site { stage, cluster, stopper, approver }
    }

    /// Another process takes over, with nothing of what this one remembers.
    pub(super) fn restart(&mut self) {
        let (stopper, stop) = stop();
        self.approver = tokio::spawn(run(self.stage.context.clone(), stop));
        std::mem::replace(&mut self.stopper, stopper).tell();
    }

    pub(super) async fn token(&self) -> String {
        recorded_token(&self.stage.claim(NODE).await).unwrap().to_owned()
    }

    pub(super) fn requests(&self) -> Api<CertificateSigningRequest> {
        Api::all(self.stage.client.clone())
    }

    /// Asks, in the name of whoever the request says asks.
    pub(super) async fn ask(&self, name: &str, ask: &Ask) {
        let groups: Vec<&str> = ask.groups.iter().copied().filter(|group| *group != "system:authenticated").collect();
        let theirs = self.cluster.client_as(&ask.user, &groups);
        let requests: Api<CertificateSigningRequest> = Api::all(theirs);
        requests.create(&PostParams::default(), &ask.object(name)).await.unwrap();
    }

    /// What became of a request after so many seconds: type, reason and message of its condition, and whether it is signed.
    pub(super) async fn after(&self, seconds: u64, name: &str) -> (Vec<[String; 3]>, bool) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let status = self.requests().get(name).await.unwrap().status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default().into_iter();
        let told =
            conditions.map(|told| [told.type_, told.reason.unwrap_or_default(), told.message.unwrap_or_default()]);
        (told.collect(), status.certificate.is_some())
    }

    pub(super) async fn asked(&self, name: &str, ask: &Ask) -> (Vec<[String; 3]>, bool) {
        self.ask(name, ask).await;
        self.after(1, name).await
    }

    pub(super) async fn denied(&self, name: &str, ask: &Ask) -> String {
        let (told, is_signed) = self.asked(name, ask).await;
        assert!(!is_signed);
        let [[kind, reason, message]] = <[[String; 3]; 1]>::try_from(told).unwrap();
        assert_eq!((kind.as_str(), reason.as_str()), ("Denied", "CSRDenied"));
        assert!(self.events("CSRDenied").await.contains(&message), "{message}");
        message
    }

    /// Tells Proxmox which address the VM has.
    pub(super) async fn address(&self, told: &str) {
        let pve = self.stage.context.region("lab").unwrap();
        let (host, params) = ("pve1".parse().unwrap(), [("ipconfig0", told.to_owned())]);
        pve.configure_vm(&host, 20_000.try_into().unwrap(), &params).await.unwrap();
    }

    /// What the claim says of its node when that is late: reason and message. Its first-boot data uses the token.
    pub(super) async fn late(&self) -> (String, String) {
        let classes: Api<ProxmoxNodeClass> = Api::all(self.stage.client.clone());
        self.stage.patch(classes, "default", json!({ "spec": { "metadataOptions": { "type": "cdrom" } } })).await;
        self.stage.run(NODE, 120).await;
        let (_, reason, message) = self.stage.condition(NODE, "Registered").await;
        (reason, message)
    }

    pub(super) async fn is_untouched(&self, name: &str, ask: &Ask) -> bool {
        self.ask(name, ask).await;
        self.after(1200, name).await == (vec![], false)
    }

    pub(super) async fn events(&self, reason: &str) -> Vec<String> {
        let events = Api::<Event>::all(self.stage.client.clone()).list(&ListParams::default()).await.unwrap().items;
        let ours = events.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
        ours.filter_map(|event| event.note).collect()
    }
}

pub(super) fn without_stock_approver() -> ClusterConfig {
    ClusterConfig { stock_approver: false, ..ClusterConfig::default() }
}
