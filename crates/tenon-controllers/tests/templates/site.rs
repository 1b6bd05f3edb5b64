//! An estate without templates, an API server with one ProxmoxTemplate, and a controller that can be killed between a request
//! and its reply.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use serde_json::{Value, json};
use tenon_api::{NodeClaim, ProxmoxNodeClass, ProxmoxTemplate, launch_record, names, template_record};
use tenon_controllers::Regions;
use tenon_controllers::templates::{TemplateContext, TemplateMemory, TemplateReport, pass};
use tenon_model::{LaunchRecord, Place, Seconds, TemplateBuild, TemplateStep, VmIdRange};
use tenon_pve::pve_rights::{AclPlace, Privileges};
use tenon_pve::{Endpoint, Token, Transport};
use tenon_sim::{Cluster, ClusterConfig, Estate, EstateConfig, HostSpec, StorageSpec, VmView, WebFile};
use tokio::sync::Notify;
use tower::{Service, ServiceExt};

use crate::claim::site::Death;
use crate::role::{FEW, grant};
use crate::templates::veil::Veil;

pub(crate) const URL: &str = "https://images.example.com/debian-13.qcow2";
pub(crate) const OTHER_URL: &str = "https://images.example.com/debian-14.qcow2";
const GIB: u64 = 1 << 30;
const EPOCH: i64 = 1_794_700_000;
/// The token that may do everything.
const TOKEN: (&str, &str) = ("tenon@pve!sim", "11111111-2222-3333-4444-555555555555");

pub(crate) struct Site {
    /// The Proxmox cluster of region lab.
    pub(crate) estate: Estate,
    /// The one of region attic, if there is one.
    pub(crate) attic: Option<Estate>,
    /// Whether region lab was taken out of the cloud config.
    pub(crate) is_lab_removed: bool,
    /// The host that region lab does not show.
    pub(crate) veil: Veil,
    pub(crate) cluster: Cluster,
    /// The controller's.
    pub(crate) token: (String, String),
}

/// Requests of a controller, to Proxmox and to Kubernetes, and when it dies.
#[derive(Clone)]
pub(crate) struct Life {
    death: Death,
    sent: Arc<AtomicUsize>,
    /// The numbers of requests that change something.
    writes: Arc<Mutex<Vec<usize>>>,
    died: Arc<Notify>,
}

impl Life {
    pub(crate) fn until(death: Death) -> Life {
        Life { death, sent: Arc::default(), writes: Arc::default(), died: Arc::default() }
    }

    /// Every death that leaves another state behind: before a change is sent, after it was carried out and before its reply is
    /// read, and before the request that follows. A kill between two looks is a kill before the second.
    pub(crate) fn deaths(&self) -> Vec<Death> {
        let writes = self.writes.lock().unwrap().clone();
        writes
            .into_iter()
            .flat_map(|number| [Death::Before(number), Death::After(number), Death::Before(number + 1)])
            .collect()
    }

    /// Sends a request if the controller is still alive then, and gives its reply if it is alive to read it.
    async fn carry<T>(&self, method: &http::Method, send: impl Future<Output = T>) -> T {
        let number = self.sent.fetch_add(1, Ordering::SeqCst);
        if *method != http::Method::GET {
            self.writes.lock().unwrap().push(number);
        }
        let (before, after) = match self.death {
            Death::Never => (usize::MAX, usize::MAX),
            Death::Before(last) => (last, last),
            Death::After(last) => (last + 1, last),
        };
        if number >= before {
            self.die().await;
        }
        let reply = send.await;
        if number >= after {
            self.die().await;
        }
        reply
    }

    async fn die(&self) {
        self.died.notify_one();
        std::future::pending::<()>().await;
    }
}

pub(crate) fn config(hosts: &[&str]) -> EstateConfig {
    EstateConfig {
        hosts: hosts.iter().map(|name| HostSpec::new(name, 16, 64 * GIB)).collect(),
        storages: vec![
            StorageSpec::new("shared", &["images", "iso", "import"], 1024 * GIB).shared(),
            StorageSpec::new("local", &["images", "iso", "import"], 256 * GIB).at("/var/lib/vz"),
        ],
        ..EstateConfig::default()
    }
}

pub(crate) fn image(tag: &str) -> WebFile {
    WebFile::image(tag, 3 * GIB, 64 << 20)
}

/// A ProxmoxTemplate with its disks and images on this storage.
pub(crate) fn template(storage: &str) -> Value {
    json!({
        "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxTemplate",
        "metadata": { "name": "debian" },
        "spec": {
            "sourceImage": { "url": URL, "checksum": image("13").sha256(), "checksumType": "sha256" },
            "storageIDs": [storage],
            "agent": { "enabled": true },
            "cpu": { "type": "host", "flags": ["+aes", "-pcid"] },
            "vga": { "type": "serial0", "memory": 32 },
            "network": [{ "bridge": "vmbr0", "firewall": true, "dnsServers": ["192.0.2.53"] }],
            "tags": ["k8s", "debian"],
        },
    })
}

impl Site {
    /// Hosts with a storage of their own and one they share, and two published images.
    pub(crate) async fn with(hosts: &[&str]) -> Site {
        Site::of(config(hosts)).await
    }

    pub(crate) async fn of(config: EstateConfig) -> Site {
        let estate = Estate::new(config);
        estate.publish(URL, image("13"));
        estate.publish(OTHER_URL, image("14"));
        let cluster = Cluster::new(ClusterConfig::default()).unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
        for definition in tenon_api::definitions() {
            definitions.create(&PostParams::default(), &definition).await.unwrap();
        }
        Site {
            estate,
            attic: None,
            is_lab_removed: false,
            veil: Veil::default(),
            cluster,
            token: (TOKEN.0.to_owned(), TOKEN.1.to_owned()),
        }
    }

    /// From now on the controller has this role, and nothing else.
    pub(crate) async fn use_role(&mut self, role: &Privileges, path: impl Fn(AclPlace) -> &'static str) {
        let secret = grant(&self.estate, role, |place| path(place).to_owned()).await;
        self.token = (FEW.to_owned(), secret);
    }

    pub(crate) fn templates(&self) -> Api<ProxmoxTemplate> {
        Api::all(self.cluster.client())
    }

    pub(crate) async fn create(&self, template: Value) {
        let template: ProxmoxTemplate = serde_json::from_value(template).unwrap();
        self.templates().create(&PostParams::default(), &template).await.unwrap();
    }

    pub(crate) async fn change(&self, patch: Value) {
        self.templates().patch("debian", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn say(&self, status: Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        self.templates().patch_status("debian", &PatchParams::default(), &patch).await.unwrap();
    }

    pub(crate) async fn delete(&self) {
        self.templates().delete("debian", &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn get(&self) -> Option<ProxmoxTemplate> {
        self.templates().get_opt("debian").await.unwrap()
    }

    pub(crate) async fn builds(&self) -> Vec<TemplateBuild> {
        self.builds_of("debian").await
    }

    pub(crate) async fn builds_of(&self, name: &str) -> Vec<TemplateBuild> {
        let template = self.templates().get(name).await.unwrap();
        let text = template.annotations().get(names::ANNOTATION_TEMPLATE_BUILDS).cloned();
        template_record::read(&text.unwrap_or_else(|| "[]".to_owned())).unwrap()
    }

    pub(crate) async fn zones(&self) -> Vec<String> {
        self.get().await.unwrap().status.and_then(|status| status.zones).unwrap_or_default()
    }

    /// Status, reason and message of the condition.
    pub(crate) async fn condition(&self) -> (String, String, String) {
        let conditions = self.get().await.unwrap().status.unwrap().conditions.unwrap();
        let found = conditions.into_iter().find(|found| found.type_ == "ProxmoxVirtualMachineTemplateReady").unwrap();
        (format!("{:?}", found.status), found.reason, found.message)
    }

    pub(crate) fn now(&self) -> Time {
        let elapsed = i64::try_from(self.estate.elapsed().as_secs()).unwrap();
        Time(Timestamp::from_second(EPOCH + elapsed).unwrap())
    }

    /// A controller that remembers nothing.
    pub(crate) fn controller(&self, life: &Life) -> TemplateContext {
        let lab =
            (!self.is_lab_removed).then(|| ("lab".to_owned(), client_of(&self.estate, life, &self.veil, &self.token)));
        let attic = self
            .attic
            .as_ref()
            .map(|attic| ("attic".to_owned(), client_of(attic, life, &Veil::default(), &self.token)));
        let kube = self.cluster.client();
        let on_kubernetes = life.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (kube, life) = (kube.clone(), on_kubernetes.clone());
            async move { life.carry(&request.method().clone(), kube.send(request)).await }
        });
        TemplateContext {
            workload: kube::Client::new(service, "default"),
            regions: Regions::from(lab.into_iter().chain(attic).collect::<BTreeMap<_, _>>()),
            cluster_id: "cluster-1".to_owned(),
            node_ids: VmIdRange::default(),
            memory: TemplateMemory::default(),
        }
    }

    pub(crate) fn proxmox(&self, life: &Life) -> tenon_pve::Client {
        client_of(&self.estate, life, &self.veil, &self.token)
    }

    /// One pass of a controller; nothing if it died.
    pub(crate) async fn pass(&self, context: &TemplateContext, life: &Life) -> Option<TemplateReport> {
        let now = self.now();
        tokio::select! {
            biased;
            () = life.died.notified() => None,
            report = pass(context, &now) => Some(report.unwrap()),
        }
    }

    /// Passes of one controller until it dies (`false`), or this is true of the builds.
    pub(crate) async fn live(&self, life: &Life, is_done: impl Fn(&Option<Vec<TemplateBuild>>) -> bool) -> bool {
        let context = self.controller(life);
        for _ in 0..2_000 {
            let Some(report) = self.pass(&context, life).await else { return false };
            assert!(report.errors.is_empty() && report.panics.is_empty(), "{report:?}");
            let builds = match self.get().await {
                Some(_) => Some(self.builds().await),
                None => None,
            };
            if is_done(&builds) {
                return true;
            }
            tokio::time::sleep(Duration::from_secs(if report.is_busy { 2 } else { 10 })).await;
        }
        panic!("it must end: {:#?} {:?}", self.builds().await, self.condition().await)
    }

    /// Passes of a controller that does not die.
    pub(crate) async fn run(&self, is_done: impl Fn(&Option<Vec<TemplateBuild>>) -> bool) {
        assert!(self.live(&Life::until(Death::Never), is_done).await);
    }

    /// So many passes, two seconds apart.
    pub(crate) async fn passes(&self, count: usize) {
        let life = Life::until(Death::Never);
        let context = self.controller(&life);
        for _ in 0..count {
            self.pass(&context, &life).await.unwrap();
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }

    pub(crate) fn vm_templates(&self) -> Vec<VmView> {
        self.estate.vms().into_iter().filter(|vm| vm.config.contains_key("template")).collect()
    }

    pub(crate) fn images(&self) -> Vec<String> {
        let volumes = self.estate.volumes().into_iter().filter(|volume| volume.content == "import");
        volumes.map(|volume| format!("{}/{}", volume.host.unwrap_or_default(), volume.volid)).collect()
    }

    /// A linked clone of a template, as a node is.
    pub(crate) async fn clone_of(&self, build: &TemplateBuild, vmid: u32) {
        let pve = self.proxmox(&Life::until(Death::Never));
        let request = tenon_pve::CloneRequest {
            template: build.vmid,
            vmid: vmid.try_into().unwrap(),
            name: format!("node-{vmid}"),
            description: "a node".to_owned(),
            pool: None,
            kind: tenon_pve::CloneKind::Linked,
            target: None,
        };
        let task = pve.clone_vm(&build.place.host, &request).await.unwrap();
        pve.await_task(&task, Duration::from_secs(60)).await.unwrap();
    }

    /// A NodeClaim whose VM is being cloned from a template.
    pub(crate) async fn claim_of(&self, name: &str, (template, vmid): (u32, u32)) {
        let place = Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() };
        let record = LaunchRecord::new(place, vmid.try_into().unwrap(), template.try_into().unwrap(), Seconds(EPOCH));
        let claim: NodeClaim = serde_json::from_value(json!({
            "metadata": { "name": name, "annotations": { names::ANNOTATION_LAUNCH: launch_record::write(&record) } },
            "spec": {
                "requirements": [],
                "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
            },
        }))
        .unwrap();
        Api::<NodeClaim>::all(self.cluster.client()).create(&PostParams::default(), &claim).await.unwrap();
    }

    /// A class that selects templates.
    pub(crate) async fn class_at(&self, name: &str, zones: &[String]) {
        let api: Api<ProxmoxNodeClass> = Api::all(self.cluster.client());
        let class: ProxmoxNodeClass = serde_json::from_value(json!({
            "metadata": { "name": name },
            "spec": { "instanceTemplateRef": { "kind": "ProxmoxTemplate", "name": "debian" } },
        }))
        .unwrap();
        if api.get_opt(name).await.unwrap().is_none() {
            api.create(&PostParams::default(), &class).await.unwrap();
        }
        let patch = Patch::Merge(json!({ "status": { "selectedZones": zones } }));
        api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }
}

fn client_of(estate: &Estate, life: &Life, veil: &Veil, token: &(String, String)) -> tenon_pve::Client {
    let (estate, on_proxmox, veil) = (estate.service(), life.clone(), veil.clone());
    let mortal = tower::service_fn(move |request: http::Request<_>| {
        let (mut estate, life, veil) = (estate.clone(), on_proxmox.clone(), veil.clone());
        async move {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            let reply = life.carry(&method, async { estate.ready().await?.call(request).await }).await?;
            Ok::<_, Infallible>(veil.over(&path, reply).await)
        }
    });
    let token = Token::new(&token.0, &token.1).unwrap();
    let endpoint = Endpoint::new("https://pve.example:8006").unwrap();
    tenon_pve::Client::new(vec![endpoint], Transport::over(mortal, |_| false), token)
}

/// Whether there are this many templates, all of them ready.
pub(crate) fn ready(count: usize) -> impl Fn(&Option<Vec<TemplateBuild>>) -> bool {
    move |builds| {
        let is_ready = |build: &TemplateBuild| build.step == TemplateStep::Ready && !build.retired;
        builds.as_ref().is_some_and(|builds| builds.len() == count && builds.iter().all(is_ready))
    }
}
