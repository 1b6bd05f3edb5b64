//! Does `kubectl` store the same things on the embedded server as on a real one?
//!
//! What it makes from flags goes over the wire as protobuf, which no other client here sends. Both servers are asked to
//! make the same things by the same kubectl, and what they then hold is compared whole.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tenon_sim::{Cluster, ClusterConfig};
use testbed::{Program, proof::with_programs, shared_testbed};
use tokio::net::TcpListener;
use tokio::process::Command;

/// What is made, and under which name it is found again. All in the namespace `from-flags`, which the first one makes.
const MADE: [(&str, &str); 17] = [
    ("namespace from-flags", "namespace/from-flags"),
    ("configmap settings --from-literal=a=1 --from-literal=b=", "configmap/settings"),
    ("secret generic password --from-literal=word=sesame", "secret/password"),
    ("serviceaccount robot", "serviceaccount/robot"),
    ("deployment web --image=nginx:1 --replicas=3 --port=80", "deployment/web"),
    ("deployment none --image=nginx:1 --replicas=0", "deployment/none"),
    ("deployment busy --image=busybox -- sleep 1d", "deployment/busy"),
    ("job once --image=busybox -- true", "job/once"),
    ("service clusterip front --tcp=80:8080", "service/front"),
    ("poddisruptionbudget most --selector=app=web --min-available=50%", "pdb/most"),
    ("poddisruptionbudget two --selector=app=web --max-unavailable=2", "pdb/two"),
    ("role reader --verb=get,list --resource=pods,deployments.apps", "role/reader"),
    ("rolebinding readers --role=reader --serviceaccount=from-flags:robot --user=ann", "rolebinding/readers"),
    ("clusterrole from-flags --verb=get --resource=nodes --resource-name=a", "clusterrole/from-flags"),
    ("clusterrole from-flags-paths --verb=get --non-resource-url=/healthz", "clusterrole/from-flags-paths"),
    ("clusterrolebinding from-flags --clusterrole=from-flags --group=all", "clusterrolebinding/from-flags"),
    ("priorityclass from-flags --value=-5 --description=late", "priorityclass/from-flags"),
];

struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    cache: PathBuf,
}

impl Kubectl {
    async fn run(&self, words: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(&self.program);
        command.env("KUBECONFIG", &self.kubeconfig).env("KUBECACHEDIR", &self.cache).args(words);
        let output = command.output().await.context("cannot run kubectl")?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {}: {told}", words.join(" "));
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Makes one thing from flags and says what the server then holds.
    async fn make(&self, flags: &str, name: &str) -> anyhow::Result<Value> {
        let mut words = vec!["create"];
        words.extend(flags.split(' '));
        // Whatever follows two dashes is the container's command.
        let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        words.splice(end..end, ["-n", "from-flags"]);
        self.run(&words).await?;
        let held = self.run(&["get", name, "-n", "from-flags", "-o", "json"]).await?;
        Ok(without_chance(serde_json::from_str(&held)?))
    }
}

/// Leaves out what differs from run to run, what controllers and allocators of the real server add, and who wrote what.
fn without_chance(mut held: Value) -> Value {
    let mut forget = |pointer: &str, keys: &[&str]| {
        if let Some(Value::Object(map)) = held.pointer_mut(pointer) {
            keys.iter().for_each(|key| drop(map.remove(*key)));
        }
    };
    forget("", &["status"]);
    forget("/metadata", &["uid", "resourceVersion", "creationTimestamp", "managedFields", "annotations", "generation"]);
    forget("/spec", &["clusterIP", "clusterIPs"]);
    for place in ["/spec/selector/matchLabels", "/spec/template/metadata/labels", "/metadata/labels"] {
        forget(place, &["controller-uid", "batch.kubernetes.io/controller-uid"]);
    }
    held
}

async fn embedded(folder: &Path) -> anyhow::Result<(tenon_sim::Server, PathBuf)> {
    let cluster = Cluster::new(ClusterConfig::default())?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let kubeconfig = folder.join("kubeconfig");
    std::fs::write(&kubeconfig, cluster.kubeconfig(&format!("https://{}", listener.local_addr()?)))?;
    let tls = cluster.tls()?;
    Ok((cluster.serve(listener, tls), kubeconfig))
}

#[tokio::test]
async fn what_kubectl_makes_from_flags_is_the_same_on_both_servers() -> anyhow::Result<()> {
    let (Some(testbed), Some(found)) = (shared_testbed()?, with_programs(&[Program::Kubectl])?) else { return Ok(()) };
    let program = found.into_iter().next().context("kubectl is there")?.path;
    let folder = tempfile::tempdir()?;
    let (server, kubeconfig) = embedded(folder.path()).await?;
    let here = Kubectl { program: program.clone(), kubeconfig, cache: folder.path().join("embedded") };
    let there = Kubectl { program, kubeconfig: testbed.kubeconfig(), cache: folder.path().join("real") };
    let mut differences = Vec::new();
    for (flags, name) in MADE {
        let (ours, theirs) = (here.make(flags, name).await?, there.make(flags, name).await?);
        if ours != theirs {
            differences.push(format!("{flags}\n  embedded {ours}\n  real     {theirs}"));
        }
    }
    server.shutdown().await;
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}
