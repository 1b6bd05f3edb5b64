//! A whole small world: a cluster, a simulated estate, guests that join, and a controller that can be killed.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Secret, ServiceAccount};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tenon_api::{NodeClaim, NodePool, ProxmoxNodeClass, ProxmoxUnmanagedTemplate, launch_record, names};
use tenon_controllers::CloudControllerManager;
use tenon_model::{LaunchRecord, NodePolicy};
use tenon_sim::{Estate, EstateConfig, GuestConfig, Guests, LedgerEntry, TemplateSpec, Tls, WorldError};

use crate::bench::{eventually, from_json, quick_guests};
use crate::embedded::{Embedded, Gate};
use crate::ground::{Ground, Kind};
use crate::real::Real;
use crate::request_audit;

/// The estate's token.
pub(crate) const TOKEN: (&str, &str) = ("tenon@pve!sim", "11111111-2222-3333-4444-555555555555");

/// How long a scenario waits for what should come soon.
const PATIENCE: Duration = Duration::from_secs(90);

/// Where the scenarios' pods live.
pub(crate) const NAMESPACE: &str = "work";

pub(crate) struct World {
    pub(crate) admin: Client,
    pub(crate) estate: Estate,
    guests: Option<Guests>,
    ground: Ground,
    volumes_before: usize,
}

impl World {
    /// A world in which everything is there but the controller and a workload.
    pub(crate) async fn new(kind: Kind, guests: GuestConfig) -> anyhow::Result<Option<World>> {
        World::on(Estate::new(EstateConfig::default()), kind, guests).await
    }

    /// The same on another estate, which has the hosts pve1 to pve3 or some of them.
    pub(crate) async fn on(estate: Estate, kind: Kind, guests: GuestConfig) -> anyhow::Result<Option<World>> {
        for (vmid, host) in [(9001, "pve1"), (9002, "pve2"), (9003, "pve3")] {
            let template =
                TemplateSpec { host: host.into(), vmid, name: "debian-13".into(), ..TemplateSpec::default() };
            match estate.add_template(&template) {
                Err(WorldError::UnknownHost(_)) => {}
                added => added?,
            }
        }
        World::over(kind, estate, Some(guests)).await
    }

    /// The same over an estate that is there, which may have other worlds; with guests of its own, or without.
    pub(crate) async fn over(kind: Kind, estate: Estate, guests: Option<GuestConfig>) -> anyhow::Result<Option<World>> {
        let volumes_before = estate.volumes().len();
        let (admin, ground) = match kind {
            Kind::Real => match Real::new(&estate).await? {
                Some(real) => (real.testbed.admin().await?, Ground::Real(Box::new(real))),
                None => return Ok(None),
            },
            Kind::Embedded => {
                // Of two worlds over one estate only one has guests; nothing in them has the same uid.
                let seed = if guests.is_some() { 1 } else { 2 };
                let embedded = Embedded::new(seed)?;
                (embedded.cluster.client(), Ground::Embedded(Box::new(embedded)))
            }
        };
        install_definitions(&admin).await?;
        let mut world = World { admin, estate, guests: None, ground, volumes_before };
        world.guests = guests.map(|guests| Guests::start(&world.estate, world.placed(guests)));
        world.prepare_namespace().await?;
        Ok(Some(world))
    }

    /// A world with quick guests, rules and a running controller.
    pub(crate) async fn running(kind: Kind) -> anyhow::Result<Option<World>> {
        let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(None) };
        world.add_rules().await?;
        world.start_controller()?;
        Ok(Some(world))
    }

    /// Guests of this world: in an embedded one they reach their cluster without a network, and share its clock.
    fn placed(&self, config: GuestConfig) -> GuestConfig {
        match &self.ground {
            Ground::Real(_) => config,
            Ground::Embedded(embedded) => {
                let epoch_s = Some(tenon_sim::ClusterConfig::default().epoch_s);
                GuestConfig { connect: Arc::new(embedded.cluster.clone()), epoch_s, ..config }
            }
        }
    }

    /// What this world stands on.
    pub(crate) fn ground(&self) -> &Ground {
        &self.ground
    }

    /// The real ground, for what there is only there: certificates, processes, files.
    pub(crate) fn real(&mut self) -> anyhow::Result<&mut Real> {
        match &mut self.ground {
            Ground::Real(real) => Ok(real),
            Ground::Embedded(_) => bail!("this scenario needs a real ground"),
        }
    }

    /// The embedded ground, for what there is only there: requests that end otherwise than over a network.
    pub(crate) fn embedded(&mut self) -> anyhow::Result<&mut Embedded> {
        match &mut self.ground {
            Ground::Real(_) => bail!("this scenario needs an embedded ground"),
            Ground::Embedded(embedded) => Ok(embedded),
        }
    }

    /// The real control plane.
    pub(crate) fn testbed(&self) -> anyhow::Result<&testbed::Testbed> {
        match &self.ground {
            Ground::Real(real) => Ok(&real.testbed),
            Ground::Embedded(_) => bail!("this scenario needs a real ground"),
        }
    }

    /// Where the cloud config is.
    pub(crate) fn cloud_config(&self) -> anyhow::Result<std::path::PathBuf> {
        match &self.ground {
            Ground::Real(real) => Ok(real.cloud_config()),
            Ground::Embedded(_) => bail!("this scenario needs a real ground"),
        }
    }

    /// The command that starts another controller, and the log it writes.
    pub(crate) fn controller_command(&self, log: &str) -> anyhow::Result<(std::process::Command, std::path::PathBuf)> {
        match &self.ground {
            Ground::Real(real) => Ok((real.controller_command(log)?, real.log_path(log))),
            Ground::Embedded(_) => bail!("this scenario needs a real ground"),
        }
    }

    /// Serves the estate with this certificate, on the port it had before.
    pub(crate) async fn serve(&mut self, tls: Tls) -> anyhow::Result<()> {
        match &mut self.ground {
            Ground::Real(real) => real.serve(&self.estate, tls).await,
            Ground::Embedded(_) => bail!("this scenario needs a real ground"),
        }
    }

    /// Proxmox answers again, with the certificate it had at first.
    pub(crate) async fn serve_again(&mut self) -> anyhow::Result<()> {
        let tls = self.real()?.tls.clone();
        self.serve(tls).await
    }

    /// Proxmox answers nobody any more.
    pub(crate) async fn stop_serving(&mut self) {
        match &mut self.ground {
            Ground::Real(real) => real.stop_serving().await,
            Ground::Embedded(embedded) => embedded.answer(Gate::Closed),
        }
    }

    /// Where guests find the API server, and whom they believe there.
    pub(crate) fn joined_at(&self) -> (String, String) {
        match &self.ground {
            Ground::Real(real) => (real.testbed.server().to_owned(), real.testbed.ca_pem()),
            Ground::Embedded(embedded) => (Embedded::server().to_owned(), embedded.cluster.ca_pem()),
        }
    }

    /// The secret of the cloud config from now on; it is read when a controller starts.
    pub(crate) fn configure(&self, secret: &str) -> anyhow::Result<()> {
        self.configure_token((TOKEN.0, secret))
    }

    /// The same for the whole token.
    pub(crate) fn configure_token(&self, token: (&str, &str)) -> anyhow::Result<()> {
        match &self.ground {
            Ground::Real(real) => real.configure(token),
            Ground::Embedded(embedded) => {
                embedded.configure(token);
                Ok(())
            }
        }
    }

    /// The controller that runs hears of another token, and whether the region of this world is still there.
    pub(crate) fn reconfigure(&mut self, token: (&str, &str), has_lab: bool) -> anyhow::Result<()> {
        match &mut self.ground {
            Ground::Real(real) => real.reconfigure(token, has_lab),
            Ground::Embedded(embedded) => {
                embedded.configure(token);
                embedded.reconfigure(&self.estate, has_lab)
            }
        }
    }

    /// What the next controller has switched on, as the text of its flag.
    pub(crate) fn switch(&mut self, gates: &str) {
        match &mut self.ground {
            Ground::Real(real) => gates.clone_into(&mut real.gates),
            Ground::Embedded(embedded) => gates.clone_into(&mut embedded.gates),
        }
    }

    /// The repair policies of the next controller, as the text of their flag.
    pub(crate) fn repair_by(&mut self, policies: &str) {
        match &mut self.ground {
            Ground::Real(real) => real.more_args.push(format!("--repair-policies={policies}")),
            Ground::Embedded(embedded) => policies.clone_into(&mut embedded.repair_policies),
        }
    }

    /// The next controller replaces nodes on hosts that are offline, however many they are.
    pub(crate) fn repair_offline_hosts(&mut self) {
        match &mut self.ground {
            Ground::Real(real) => real.more_args.push("--repair-offline-hosts".to_owned()),
            Ground::Embedded(embedded) => embedded.repairs_offline_hosts = true,
        }
    }

    /// The next controller starts VMs of silent nodes that are stopped.
    pub(crate) fn start_stopped_vms(&mut self) {
        match &mut self.ground {
            Ground::Real(real) => real.more_args.push("--start-stopped-vms".to_owned()),
            Ground::Embedded(embedded) => embedded.starts_stopped_vms = true,
        }
    }

    /// How long a launch of the next controller may stand still.
    pub(crate) fn limit_launch(&mut self, limit: Duration) {
        match &mut self.ground {
            Ground::Real(real) => real.launch_timeout = Some(limit),
            Ground::Embedded(embedded) => embedded.launch_timeout = Some(limit),
        }
    }

    /// The next controller is told that there is no cloud controller manager.
    pub(crate) fn without_ccm(&mut self) {
        match &mut self.ground {
            Ground::Real(real) => real.ccm = "none",
            Ground::Embedded(embedded) => embedded.ccm = CloudControllerManager::None,
        }
    }

    /// The instance types of the next controller, as the text of a file.
    pub(crate) fn use_instance_types(&mut self, text: &str) -> anyhow::Result<()> {
        match &mut self.ground {
            Ground::Real(real) => real.use_instance_types(text),
            Ground::Embedded(embedded) => {
                text.clone_into(&mut embedded.types);
                Ok(())
            }
        }
    }

    /// The next controller binds VMs to CPUs of their hosts.
    pub(crate) fn bind_cpus(&mut self) {
        match &mut self.ground {
            Ground::Real(real) => real.node_policy = "static",
            Ground::Embedded(embedded) => embedded.node_policy = NodePolicy::Static,
        }
    }

    /// The next controller reaches the API server like this, in an embedded world.
    pub(crate) fn connect(&mut self, client: Client) -> anyhow::Result<()> {
        match &mut self.ground {
            Ground::Real(_) => bail!("this scenario needs an embedded ground"),
            Ground::Embedded(embedded) => embedded.workload = client,
        }
        Ok(())
    }

    /// Starts the controller.
    pub(crate) fn start_controller(&mut self) -> anyhow::Result<()> {
        match &mut self.ground {
            Ground::Real(real) => real.start_controller(),
            Ground::Embedded(embedded) => embedded.start_controller(&self.estate),
        }
    }

    /// kill -9.
    pub(crate) fn kill_controller(&mut self) -> anyhow::Result<()> {
        match &mut self.ground {
            Ground::Real(real) => real.kill_controller(),
            Ground::Embedded(embedded) => embedded.kill_controller(),
        }
    }

    /// Whether the controller that was started last still runs.
    pub(crate) fn is_controller_running(&mut self) -> anyhow::Result<bool> {
        match &mut self.ground {
            Ground::Real(real) => real.is_controller_running(),
            Ground::Embedded(embedded) => embedded.is_controller_running(),
        }
    }

    /// What the controller said so far.
    pub(crate) fn log(&self) -> String {
        match &self.ground {
            Ground::Real(real) => real.log("controller"),
            Ground::Embedded(embedded) => embedded.log(),
        }
    }

    /// Every VM loses its system; those that run then boot with this one, if there is one.
    pub(crate) async fn replace_guests(&mut self, config: Option<GuestConfig>) {
        if let Some(guests) = self.guests.take() {
            guests.shutdown().await;
        }
        self.guests = config.map(|config| Guests::start(&self.estate, self.placed(config)));
    }

    async fn prepare_namespace(&self) -> anyhow::Result<()> {
        let namespace: Namespace = from_json(json!({ "metadata": { "name": NAMESPACE } }))?;
        Api::all(self.admin.clone()).create(&PostParams::default(), &namespace).await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin.clone(), NAMESPACE);
        eventually("the default ServiceAccount exists", async || Ok(accounts.get_opt("default").await?)).await?;
        Ok(())
    }

    /// A template, a class and a pool.
    pub(crate) async fn add_rules(&self) -> anyhow::Result<()> {
        self.add_template("debian-13").await?;
        self.add_class(json!({})).await?;
        self.add_pool(json!({})).await
    }

    pub(crate) async fn add_template(&self, name: &str) -> anyhow::Result<()> {
        let template: ProxmoxUnmanagedTemplate = from_json(json!({
            "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxUnmanagedTemplate",
            "metadata": { "name": "debian" }, "spec": { "templateName": name },
        }))?;
        Api::all(self.admin.clone()).create(&PostParams::default(), &template).await?;
        Ok(())
    }

    pub(crate) async fn add_class(&self, more: Value) -> anyhow::Result<()> {
        let mut class = json!({
            "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxNodeClass",
            "metadata": { "name": "default" },
            "spec": {
                "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" },
                "metadataOptions": { "type": "cdrom" },
            },
        });
        extend(&mut class["spec"], more);
        let class: ProxmoxNodeClass = from_json(class)?;
        Api::all(self.admin.clone()).create(&PostParams::default(), &class).await?;
        Ok(())
    }

    pub(crate) async fn add_pool(&self, more: Value) -> anyhow::Result<()> {
        self.add_pool_named("default", more).await
    }

    pub(crate) async fn add_pool_named(&self, name: &str, more: Value) -> anyhow::Result<()> {
        let mut pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": name },
            "spec": {
                "template": { "spec": {
                    "requirements": [],
                    "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
                } },
                "disruption": { "consolidateAfter": "1s", "budgets": [{ "nodes": "100%" }] },
            },
        });
        extend(&mut pool["spec"], more);
        let pool: NodePool = from_json(pool)?;
        Api::all(self.admin.clone()).create(&PostParams::default(), &pool).await?;
        Ok(())
    }

    /// A deployment whose pods need nine cores each, so that each gets a node of sixteen, and a host, of its own.
    pub(crate) async fn deploy(&self, name: &str, replicas: u32) -> anyhow::Result<()> {
        let container = json!({ "resources": { "requests": { "cpu": "9", "memory": "4Gi" } } });
        self.deploy_pods((name, replicas), container, json!({})).await
    }

    /// A deployment of pods with one container, which is more than a name and an image, as the pods are more than it.
    pub(crate) async fn deploy_pods(
        &self,
        (name, replicas): (&str, u32),
        container: Value,
        more: Value,
    ) -> anyhow::Result<()> {
        let mut whole = json!({ "name": "c", "image": "registry.example/c:1" });
        extend(&mut whole, container);
        let mut spec = json!({ "terminationGracePeriodSeconds": 1, "containers": [whole] });
        extend(&mut spec, more);
        let deployment: Deployment = from_json(json!({
            "metadata": { "name": name },
            "spec": {
                "replicas": replicas, "selector": { "matchLabels": { "app": name } },
                "template": { "metadata": { "labels": { "app": name } }, "spec": spec },
            },
        }))?;
        let api: Api<Deployment> = Api::namespaced(self.admin.clone(), NAMESPACE);
        api.create(&PostParams::default(), &deployment).await?;
        Ok(())
    }

    pub(crate) async fn scale(&self, name: &str, replicas: u32) -> anyhow::Result<()> {
        let api: Api<Deployment> = Api::namespaced(self.admin.clone(), NAMESPACE);
        let patch = json!({ "spec": { "replicas": replicas } });
        api.patch_scale(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    pub(crate) async fn claims(&self) -> anyhow::Result<Vec<NodeClaim>> {
        Ok(Api::<NodeClaim>::all(self.admin.clone()).list(&ListParams::default()).await?.items)
    }

    pub(crate) async fn nodes(&self) -> anyhow::Result<Vec<Node>> {
        Ok(Api::<Node>::all(self.admin.clone()).list(&ListParams::default()).await?.items)
    }

    /// VMs that are no template.
    pub(crate) fn vms(&self) -> Vec<u32> {
        self.estate.vms().iter().map(|vm| vm.vmid).filter(|vmid| *vmid >= 20_000).collect()
    }

    /// Waits, and says what the controller and the guests said if it was in vain.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        ask: impl AsyncFnMut() -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        self.until_within(PATIENCE, what, ask).await
    }

    /// The same for what takes longer.
    pub(crate) async fn until_within<T>(
        &self,
        patience: Duration,
        what: &str,
        ask: impl AsyncFnMut() -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        match tokio::time::timeout(patience, forever(ask)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let told = |vmid| (vmid, self.guests.as_ref().map(|guests| guests.guest_log(vmid)));
                let guests: Vec<_> = self.vms().into_iter().map(told).collect();
                bail!("not within {patience:?}: {what}\n{}\nguests: {guests:#?}", self.tail())
            }
        }
    }

    /// What the controller said last.
    pub(crate) fn tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        format!("the controller says:\n{}", lines[lines.len().saturating_sub(40)..].join("\n"))
    }

    /// Waits for a claim whose launch stands so.
    pub(crate) async fn until_launch(
        &self,
        what: &str,
        is_so: impl Fn(&LaunchRecord) -> bool,
    ) -> anyhow::Result<(NodeClaim, LaunchRecord)> {
        self.until(what, async || {
            let claims = self.claims().await?.into_iter();
            let mut launches = claims.filter_map(|claim| record_of(&claim).ok().map(|record| (claim, record)));
            Ok(launches.find(|(_, record)| is_so(record)))
        })
        .await
    }

    /// Deletes a claim, as `kubectl delete --wait=false` does.
    pub(crate) async fn delete_claim(&self, name: &str) -> anyhow::Result<()> {
        Api::<NodeClaim>::all(self.admin.clone()).delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// All copies of templates the estate agreed to make.
    pub(crate) fn clones(&self) -> Vec<LedgerEntry> {
        let is_clone = |entry: &LedgerEntry| entry.method == "POST" && entry.path.ends_with("/clone");
        self.estate.ledger().into_iter().filter(|entry| is_clone(entry) && entry.status == 200).collect()
    }

    /// Waits until as many pods run.
    pub(crate) async fn until_running(&self, app: &str, count: usize) -> anyhow::Result<()> {
        let pods: Api<Pod> = Api::namespaced(self.admin.clone(), NAMESPACE);
        let params = ListParams::default().labels(&format!("app={app}"));
        self.until(&format!("{count} pods of {app} run"), async || {
            let list = pods.list(&params).await?.items;
            let is_running = |pod: &&Pod| pod.status.as_ref().and_then(|told| told.phase.as_deref()) == Some("Running");
            Ok((list.iter().filter(is_running).count() == count).then_some(()))
        })
        .await
    }

    /// Waits until nothing is left: no claim, node, VM, volume or bootstrap token.
    pub(crate) async fn until_nothing_is_left(&self) -> anyhow::Result<()> {
        let secrets: Api<Secret> = Api::namespaced(self.admin.clone(), "kube-system");
        let tokens = ListParams::default().labels(&format!("{}=true", names::LABEL_BOOTSTRAP_TOKEN));
        self.until("nothing is left", async || {
            let claims = self.claims().await?.len();
            let nodes = self.nodes().await?.len();
            let tokens = secrets.list(&tokens).await?.items.len();
            Ok((claims + nodes + tokens + self.vms().len() == 0).then_some(()))
        })
        .await?;
        assert_eq!(self.estate.volumes().len(), self.volumes_before, "{:#?}", self.estate.volumes());
        Ok(())
    }

    /// The notes of all events with this reason.
    pub(crate) async fn events(&self, reason: &str) -> anyhow::Result<Vec<String>> {
        let list = Api::<Event>::all(self.admin.clone()).list(&ListParams::default()).await?.items;
        let ours = list.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
        Ok(ours.filter_map(|event| event.note).collect())
    }

    /// Waits for an event with this reason that says these words.
    pub(crate) async fn until_event(&self, reason: &str, words: &str) -> anyhow::Result<String> {
        self.until(&format!("an event {reason} says `{words}`"), async || {
            Ok(self.events(reason).await?.into_iter().find(|note| note.contains(words)))
        })
        .await
    }

    /// Ends the world, controller first, politely.
    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        match &mut self.ground {
            Ground::Real(real) => real.end().await?,
            Ground::Embedded(embedded) => embedded.end().await?,
        }
        if let Some(guests) = self.guests.take() {
            guests.shutdown().await;
        }
        request_audit::keeps_to_the_table(&self.estate.ledger())
    }
}

/// The launch written into a claim.
pub(crate) fn record_of(claim: &NodeClaim) -> anyhow::Result<LaunchRecord> {
    let text = claim.annotations().get(names::ANNOTATION_LAUNCH).context("the claim has no launch record")?;
    Ok(launch_record::read(text)?)
}

async fn forever<T>(mut ask: impl AsyncFnMut() -> anyhow::Result<Option<T>>) -> anyhow::Result<T> {
    loop {
        if let Some(answer) = ask().await? {
            return Ok(answer);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn extend(object: &mut Value, more: Value) {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
}

pub(crate) async fn install_definitions(admin: &Client) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(admin.clone());
    for definition in tenon_api::definitions() {
        let name = definition.name_any();
        definitions.create(&PostParams::default(), &definition).await?;
        let served = await_condition(definitions.clone(), &name, conditions::is_crd_established());
        tokio::time::timeout(Duration::from_secs(30), served).await??;
    }
    // A definition that is established is served a moment later.
    let claims: Api<NodeClaim> = Api::all(admin.clone());
    eventually("claims are served", async || Ok(claims.list(&ListParams::default()).await.ok())).await?;
    let pools: Api<NodePool> = Api::all(admin.clone());
    eventually("pools are served", async || Ok(pools.list(&ListParams::default()).await.ok())).await?;
    Ok(())
}
