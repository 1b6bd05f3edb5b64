//! A whole small world: a control plane of its own, a simulated estate over HTTPS, guests that join, and the real
//! controller as a process of its own that can be killed.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
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
use tempfile::TempDir;
use tenon_api::{NodeClaim, NodePool, ProxmoxNodeClass, ProxmoxUnmanagedTemplate, launch_record, names};
use tenon_model::LaunchRecord;
use tenon_sim::{Estate, EstateConfig, GuestConfig, Guests, LedgerEntry, Server, TemplateSpec, Tls};
use testbed::{Testbed, own_testbed};
use tokio::net::TcpListener;

use crate::bench::{eventually, from_json, quick_guests};

/// The estate's token.
pub(crate) const TOKEN: (&str, &str) = ("tenon@pve!sim", "11111111-2222-3333-4444-555555555555");

/// How long a scenario waits for what should come soon.
const PATIENCE: Duration = Duration::from_secs(90);

/// Where the scenarios' pods live.
pub(crate) const NAMESPACE: &str = "work";

pub(crate) struct World {
    pub(crate) testbed: Testbed,
    pub(crate) admin: Client,
    pub(crate) estate: Estate,
    guests: Option<Guests>,
    server: Option<Server>,
    /// What the estate is served with unless a test wants otherwise.
    pub(crate) tls: Tls,
    port: u16,
    dir: TempDir,
    controller: Option<Child>,
    volumes_before: usize,
}

impl World {
    /// A world in which everything is there but the controller and a workload.
    pub(crate) async fn new(guests: GuestConfig) -> anyhow::Result<Option<World>> {
        let Some(testbed) = own_testbed()? else { return Ok(None) };
        let admin = testbed.admin().await?;
        install_definitions(&admin).await?;
        let estate = Estate::new(EstateConfig::default());
        for (vmid, host) in [(9001, "pve1"), (9002, "pve2"), (9003, "pve3")] {
            let template =
                TemplateSpec { host: host.into(), vmid, name: "debian-13".into(), ..TemplateSpec::default() };
            estate.add_template(&template)?;
        }
        let volumes_before = estate.volumes().len();
        let guests = Some(Guests::start(&estate, guests));
        let dir = tempfile::tempdir()?;
        let tls = Tls::self_signed()?;
        let (server, controller) = (None, None);
        let mut world = World { testbed, admin, estate, guests, server, tls, port: 0, dir, controller, volumes_before };
        world.serve(world.tls.clone()).await?;
        world.configure(TOKEN.1)?;
        world.prepare_namespace().await?;
        Ok(Some(world))
    }

    /// A world with quick guests, rules and a running controller.
    pub(crate) async fn running() -> anyhow::Result<Option<World>> {
        let Some(mut world) = World::new(quick_guests()).await? else { return Ok(None) };
        world.add_rules().await?;
        world.start_controller()?;
        Ok(Some(world))
    }

    /// Serves the estate, on the port it had before if it had one.
    pub(crate) async fn serve(&mut self, tls: Tls) -> anyhow::Result<()> {
        fs::write(self.dir.path().join("ca.pem"), tls.ca_pem())?;
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await?;
        let server = self.estate.serve(listener, tls);
        self.port = server.local_addr().port();
        self.server = Some(server);
        Ok(())
    }

    /// Proxmox answers nobody any more.
    pub(crate) async fn stop_serving(&mut self) {
        if let Some(server) = self.server.take() {
            server.shutdown().await;
        }
    }

    /// Every VM loses its system; those that run then boot with this one, if there is one.
    pub(crate) async fn replace_guests(&mut self, config: Option<GuestConfig>) {
        if let Some(guests) = self.guests.take() {
            guests.shutdown().await;
        }
        self.guests = config.map(|config| Guests::start(&self.estate, config));
    }

    /// Writes the cloud config, with this secret.
    pub(crate) fn configure(&self, secret: &str) -> anyhow::Result<()> {
        let path = self.dir.path();
        let ca = path.join("ca.pem");
        let config = format!(
            "clusters:\n- region: lab\n  url: https://localhost:{}/api2/json\n  ca_file: {}\n  token_id: {}\n  token_secret: {secret}\n",
            self.port,
            ca.display(),
            TOKEN.0
        );
        Ok(fs::write(path.join("cloud.yaml"), config)?)
    }

    pub(crate) fn log_path(&self, log: &str) -> PathBuf {
        self.dir.path().join(format!("{log}.log"))
    }

    /// Starts the controller, as a user would.
    pub(crate) fn start_controller(&mut self) -> anyhow::Result<()> {
        let mut command = self.controller_command("controller")?;
        // A world has one controller, and one that is killed and started again should not wait for its own old lease.
        let child = command.arg("-disable-leader-election").spawn().context("cannot start the controller")?;
        self.controller = Some(child);
        Ok(())
    }

    /// The command that starts a controller, which writes its log into a file of this name.
    pub(crate) fn controller_command(&self, log: &str) -> anyhow::Result<Command> {
        let log = File::options().create(true).append(true).open(self.log_path(log))?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
        command
            .args([
                "controller",
                "-metrics-port=0",
                "-health-probe-port=0",
                "--batch-idle-duration=300ms",
                "--batch-max-duration=1s",
            ])
            .arg("--kubeconfig")
            .arg(self.testbed.kubeconfig())
            .arg("--cloud-config")
            .arg(self.dir.path().join("cloud.yaml"))
            .args(["--cluster-endpoint", self.testbed.server()])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Ok(command)
    }

    /// kill -9.
    pub(crate) fn kill_controller(&mut self) -> anyhow::Result<()> {
        let mut child = self.controller.take().context("no controller runs")?;
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Whether the controller that was started last still runs.
    pub(crate) fn is_controller_running(&mut self) -> anyhow::Result<bool> {
        let child = self.controller.as_mut().context("no controller was started")?;
        Ok(child.try_wait()?.is_none())
    }

    /// What the controller said so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log_path("controller")).unwrap_or_default()
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
        let mut pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "default" },
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
        let deployment: Deployment = from_json(json!({
            "metadata": { "name": name },
            "spec": {
                "replicas": replicas, "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": {
                        "terminationGracePeriodSeconds": 1,
                        "containers": [{ "name": "c", "image": "registry.example/c:1",
                            "resources": { "requests": { "cpu": "9", "memory": "4Gi" } } }],
                    },
                },
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
        if let Some(mut child) = self.controller.take() {
            Command::new("kill").arg(child.id().to_string()).status()?;
            let status = child.wait()?;
            assert!(status.success(), "the controller ended with {status}\n{}", self.log());
        }
        if let Some(guests) = self.guests.take() {
            guests.shutdown().await;
        }
        if let Some(server) = self.server.take() {
            server.shutdown().await;
        }
        Ok(())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(mut child) = self.controller.take() {
            // A test that failed must not leave a controller behind.
            let _ = child.kill();
            let _ = child.wait();
        }
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

async fn install_definitions(admin: &Client) -> anyhow::Result<()> {
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
