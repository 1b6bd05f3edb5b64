//! Does the chart install, take over from the Go provider's chart with its values, run, and leave nothing behind?

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use kube::ResourceExt;
use kube::api::Api;
use serde_json::Value;
use tenon_api::ProxmoxNodeClass;
use testbed::proof::with_programs;
use testbed::{Program, Testbed};

use crate::bench::quick_guests;
use crate::ground::Kind;
use crate::world::World;

/// Runs Helm or kubectl as the administrator of a control plane.
pub(crate) struct Admin<'a> {
    pub(crate) testbed: &'a Testbed,
}

impl Admin<'_> {
    fn run(&self, program: Program, args: &[&str]) -> anyhow::Result<String> {
        let found = with_programs(&[program])?.into_iter().flatten().next().context("the program is gone")?;
        let mut command = Command::new(found.path);
        let output = command.args(args).envs(self.testbed.environment()).stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }

    pub(crate) fn helm(&self, args: &[&str]) -> anyhow::Result<String> {
        self.run(Program::Helm, args)
    }

    pub(crate) fn kubectl(&self, args: &[&str]) -> anyhow::Result<String> {
        self.run(Program::Kubectl, args)
    }

    /// Every object that is in no namespace, but for what the control plane makes by itself.
    fn cluster_scoped(&self) -> anyhow::Result<BTreeSet<String>> {
        let kinds = self.kubectl(&["api-resources", "--namespaced=false", "--verbs=list,create", "-o", "name"])?;
        let kinds: Vec<&str> = kinds.lines().filter(|kind| !NOBODYS.contains(kind)).collect();
        ensure!(kinds.len() > 15, "{kinds:?}");
        Ok(self.kubectl(&["get", &kinds.join(","), "-o", "name"])?.lines().map(str::to_owned).collect())
    }
}

/// Kinds of which nodes and the control plane make objects by themselves.
const NOBODYS: [&str; 3] =
    ["nodes", "servicecidrs.networking.k8s.io", "certificatesigningrequests.certificates.k8s.io"];

pub(crate) fn beside(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path).to_string_lossy().into_owned()
}

/// The container of a Deployment as the command line and environment of a process.
struct Deployed {
    args: Vec<String>,
    variables: Vec<(String, String)>,
}

fn deployed(deployment: &Value) -> anyhow::Result<Deployed> {
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let texts =
        |list: &Value| list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let namespace = deployment["metadata"]["namespace"].as_str().context("no namespace")?;
    let variable = |row: &Value| {
        let value = row["value"]
            .as_str()
            .or_else(|| (row["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.namespace").then_some(namespace));
        Some((row["name"].as_str()?.to_owned(), value?.to_owned()))
    };
    let variables = container["env"].as_array().into_iter().flatten().filter_map(variable).collect();
    Ok(Deployed { args: texts(&container["args"]), variables })
}

/// Installs or upgrades the release `karpenter`. Its pods would wait for a node for ever: the controller runs here as a process.
fn release(world: &World, verb: &str, chart: &str, more: &[&str]) -> anyhow::Result<String> {
    let (admin, chart) = (Admin { testbed: world.testbed()? }, beside(chart));
    let values = beside("tests/end_to_end/charts/values-of-a-user.yaml");
    let always =
        [verb, "karpenter", &chart, "--namespace", "kube-system", "--values", &values, "--set", "replicaCount=0"];
    admin.helm(&[&always[..], more].concat())
}

/// Runs the controller with exactly what the release's Deployment says, as its account; a node comes and goes.
async fn scale_up_and_down(world: &mut World) -> anyhow::Result<()> {
    let admin = Admin { testbed: world.testbed()? };
    let deployment = admin.kubectl(&["get", "deployment", "karpenter-tenon", "-n", "kube-system", "-o", "json"])?;
    let Deployed { args, variables } = deployed(&serde_json::from_str(&deployment)?)?;
    ensure!(args.iter().any(|arg| arg == "-proxmox-vmid=21000"), "{args:?}");
    let account = world.testbed()?.service_account_kubeconfig("kube-system", "karpenter-tenon").await?;
    world.real()?.start_deployed(&args, &variables, &account)?;
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    ensure!(world.vms().iter().all(|id| *id >= 21_000), "{:?}", world.vms());
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    until_class_is_free(world).await?;
    let log = world.log();
    ensure!(log.contains("--vm-memory-overhead-percent (0.075) has no effect"), "{log}");
    crate::rights_audit::keeps_to_the_table_as(world.testbed()?, "karpenter-tenon")
}

/// A class that is in use keeps its finalizer, and without the controller nobody takes it off.
async fn until_class_is_free(world: &World) -> anyhow::Result<()> {
    let classes: Api<ProxmoxNodeClass> = Api::all(world.admin.clone());
    world
        .until("the class is not in use", async || {
            Ok(classes.get("default").await?.finalizers().is_empty().then_some(()))
        })
        .await
}

/// Uninstalls the release, after which everything in no namespace is as it was before.
async fn uninstall(world: &World, before: &BTreeSet<String>) -> anyhow::Result<()> {
    let admin = Admin { testbed: world.testbed()? };
    admin.helm(&["uninstall", "karpenter", "--namespace", "kube-system"])?;
    world
        .until("nothing of the release is left", async || {
            let after = admin.cluster_scoped()?;
            let left: Vec<&String> = after.difference(before).collect();
            Ok(left.is_empty().then_some(()))
        })
        .await
}

/// Values that a user of Tenon adds.
const MORE: &str = "\
metrics: { type: none }
settings: { featureGates: { nodeRepair: true } }
repairPolicies:
- { conditionType: Ready, conditionStatus: 'False', reasonRegex: '.*', tolerationDuration: 20m, priority: 1, action: RebootNode }
- { conditionType: Ready, conditionStatus: Unknown, tolerationDuration: 5s, action: ReplaceNode }
schedulerConfig: |
  podTopologySpread:
    defaultConstraints:
    - { maxSkew: 5, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway }
";

async fn world() -> anyhow::Result<Option<World>> {
    if with_programs(&[Program::Helm, Program::Kubectl])?.is_none() {
        return Ok(None);
    }
    World::new(Kind::Real, quick_guests()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fresh_release_with_the_go_providers_values_runs_and_leaves_nothing_but_the_definitions() -> anyhow::Result<()>
{
    let Some(mut world) = world().await? else { return Ok(()) };
    let before = Admin { testbed: world.testbed()? }.cluster_scoped()?;
    ensure!(before.iter().any(|name| name.starts_with("customresourcedefinition")), "{before:?}");
    // What only some installations need is granted, and used, too.
    let more = world.testbed()?.dir().join("more-values.yaml");
    std::fs::write(&more, MORE)?;
    let more = ["--values".to_owned(), more.to_string_lossy().into_owned()];
    let more = more.each_ref().map(String::as_str);
    let notes = release(&world, "install", "../../charts/tenon", &more)?;
    ensure!(notes.contains("kube-system/karpenter-tenon") && !notes.contains("cannot start yet"), "{notes}");
    let installed = Admin { testbed: world.testbed()? }.cluster_scoped()?;
    ensure!(installed.len() > before.len() + 4, "{:?}", installed.difference(&before));
    scale_up_and_down(&mut world).await?;
    crate::repairing::a_silent_node_is_replaced(&world).await?;
    until_class_is_free(&world).await?;
    ensure!(world.log().matches("using repair policy").count() == 2, "{}", world.tail());
    uninstall(&world, &before).await?;
    world.end().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_of_the_go_providers_chart_is_upgraded_with_its_values_runs_and_is_uninstalled() -> anyhow::Result<()>
{
    let Some(mut world) = world().await? else { return Ok(()) };
    let before = Admin { testbed: world.testbed()? }.cluster_scoped()?;
    release(&world, "install", "tests/end_to_end/charts/go-provider", &[])?;
    let notes = release(&world, "upgrade", "../../charts/tenon", &[])?;
    ensure!(notes.contains("kube-system/karpenter-tenon") && !notes.contains("cannot start yet"), "{notes}");

    let admin = Admin { testbed: world.testbed()? };
    let names = admin.kubectl(&["get", "deployments,serviceaccounts,secrets", "-n", "kube-system", "-o", "name"])?;
    ensure!(!names.contains("karpenter-provider-proxmox"), "objects of the older chart are left: {names}");
    let pools = admin.kubectl(&["get", "nodepools,proxmoxnodeclasses,proxmoxunmanagedtemplates", "-o", "name"])?;
    ensure!(pools.lines().count() == 3, "{pools}");
    scale_up_and_down(&mut world).await?;
    uninstall(&world, &before).await?;
    world.end().await
}
