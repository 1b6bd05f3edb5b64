//! Does the chart install, take over from the Go provider's chart with its values, run, and leave nothing behind?

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use kube::ResourceExt;
use kube::api::Api;
use serde_json::Value;
use tenon_api::ProxmoxNodeClass;
use testbed::proof::with_programs;
use testbed::{Program, Testbed, eventually, own_testbed};

use crate::bench::quick_guests;
use crate::ground::Kind;
use crate::world::{World, install_definitions};

/// What the chart must also be able to render, as `--set` of Helm.
const VALUES: [&[&str]; 8] = [
    &[],
    &["csrApprover=true", "ccm=none", "nodePolicy=static", "firstBootSecretNamespaces={default}"],
    &["existingConfigSecret=mine", "existingConfigSecretKey=proxmox.yaml", "configFile=/etc/elsewhere/cloud.yaml"],
    &[
        "metrics.enabled=true",
        "networkPolicy.create=true",
        "podDisruptionBudget.create=true",
        "grafanaDashboard.create=true",
    ],
    &["serviceAccount.create=false", "serviceAccount.name=other", "bootstrapBindings.create=false"],
    &["instanceTypes=[]", "nodeSettings=\\{\\}", "updateStrategy.type=Recreate", "fullnameOverride=scaler"],
    &["schedulerConfig=podTopologySpread: {}", "priorityClassName=", "image.repository=registry.example/tenon"],
    &[
        "extraObjects[0].apiVersion=v1",
        "extraObjects[0].kind=ConfigMap",
        "extraObjects[0].metadata.name=\\{\\{ .Release.Name \\}\\}-more",
    ],
];

/// Runs Helm or kubectl as the administrator of a control plane.
struct Admin<'a> {
    testbed: &'a Testbed,
    folder: PathBuf,
}

impl Admin<'_> {
    fn run(&self, program: Program, args: &[&str]) -> anyhow::Result<String> {
        let found = with_programs(&[program])?.into_iter().flatten().next().context("the program is gone")?;
        let mut command = Command::new(found.path);
        let output = command.args(args).envs(self.testbed.environment()).stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }

    fn helm(&self, args: &[&str]) -> anyhow::Result<String> {
        self.run(Program::Helm, args)
    }

    fn kubectl(&self, args: &[&str]) -> anyhow::Result<String> {
        self.run(Program::Kubectl, args)
    }

    /// What the API server says of objects, without keeping them.
    fn try_objects(&self, manifests: &str) -> anyhow::Result<()> {
        let path = self.folder.join("rendered.yaml");
        std::fs::write(&path, manifests)?;
        self.kubectl(&["apply", "--dry-run=server", "-f", &path.to_string_lossy()]).map(drop)
    }
}

fn beside(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path).to_string_lossy().into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_server_takes_what_the_chart_renders_whatever_the_values() -> anyhow::Result<()> {
    let Some(testbed) = own_testbed()? else { return Ok(()) };
    if with_programs(&[Program::Helm, Program::Kubectl])?.is_none() {
        return Ok(());
    }
    install_definitions(&testbed.admin().await?).await?;
    let admin = Admin { folder: testbed.dir().to_owned(), testbed: &testbed };
    let (chart, user) = (beside("../../charts/tenon"), beside("tests/end_to_end/charts/values-of-a-user.yaml"));
    admin.helm(&["lint", "--strict", &chart])?;
    admin.try_objects(&admin.helm(&["template", "t", &chart, "--namespace", "kube-system", "--values", &user])?)?;
    for values in VALUES {
        let mut args = vec!["template", "t", &chart, "--namespace", "kube-system"];
        values.iter().for_each(|value| args.extend(["--set", value]));
        let rendered = admin.helm(&args)?;
        admin.try_objects(&rendered).with_context(|| format!("{values:?}"))?;
    }
    for wrong in ["metrics.port=0", "csrApprover=perhaps", "customResources.nodeClass.a.enable=true", "replicas=2"] {
        let refused = admin.helm(&["template", "t", &chart, "--set", wrong]).unwrap_err().to_string();
        ensure!(refused.contains("values don't meet the specifications"), "{wrong}: {refused}");
    }
    Ok(())
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_of_the_go_providers_chart_is_upgraded_with_its_values_runs_and_is_uninstalled() -> anyhow::Result<()>
{
    if with_programs(&[Program::Helm, Program::Kubectl])?.is_none() {
        return Ok(());
    }
    let Some(mut world) = World::new(Kind::Real, quick_guests()).await? else { return Ok(()) };
    let values = beside("tests/end_to_end/charts/values-of-a-user.yaml");
    let release = |verb, chart: &str| {
        let testbed = world.testbed()?;
        let admin = Admin { folder: testbed.dir().to_owned(), testbed };
        // Its pods would wait for a node for ever: the controller runs here as a process.
        let alone = ["--set", "replicaCount=0"];
        admin.helm(
            &[&[verb, "karpenter", &beside(chart), "--namespace", "kube-system", "--values", &values], &alone[..]]
                .concat(),
        )
    };
    release("install", "tests/end_to_end/charts/go-provider")?;
    let notes = release("upgrade", "../../charts/tenon")?;
    ensure!(notes.contains("kube-system/karpenter-tenon") && !notes.contains("cannot start yet"), "{notes}");

    let admin = Admin { folder: world.testbed()?.dir().to_owned(), testbed: world.testbed()? };
    let names = admin.kubectl(&["get", "deployments,serviceaccounts,secrets", "-n", "kube-system", "-o", "name"])?;
    ensure!(!names.contains("karpenter-provider-proxmox"), "objects of the older chart are left: {names}");
    let pools = admin.kubectl(&["get", "nodepools,proxmoxnodeclasses,proxmoxunmanagedtemplates", "-o", "name"])?;
    ensure!(pools.lines().count() == 3, "{pools}");
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
    let classes: Api<ProxmoxNodeClass> = Api::all(world.admin.clone());
    // A class that is in use keeps its finalizer, and without the controller nobody takes it off.
    world
        .until("the class is not in use", async || {
            Ok(classes.get("default").await?.finalizers().is_empty().then_some(()))
        })
        .await?;
    let log = world.log();
    ensure!(log.contains("--vm-memory-overhead-percent (0.075) has no effect"), "{log}");

    let admin = Admin { folder: world.testbed()?.dir().to_owned(), testbed: world.testbed()? };
    crate::rights::nothing_was_refused_to(world.testbed()?, "karpenter-tenon")?;
    admin.helm(&["uninstall", "karpenter", "--namespace", "kube-system"])?;
    let kinds =
        "clusterroles,clusterrolebindings,nodepools,proxmoxnodeclasses,proxmoxunmanagedtemplates,priorityclasses";
    let left = || admin.kubectl(&["get", kinds, "-l", "app.kubernetes.io/instance=karpenter", "-o", "name"]);
    eventually("nothing of the release is left", async || Ok(left()?.is_empty().then_some(()))).await?;
    world.end().await
}
