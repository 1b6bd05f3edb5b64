//! Several controllers in one world, each with a log of its own, that can be killed, frozen and asked to end.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::Api;
use serde_json::Value;

use crate::world::World;

/// The Lease outside of a pod, unless a flag says otherwise.
const LEASE: (&str, &str) = ("kube-system", "proxmox-karpenter-leader-election");

/// One controller process.
pub(crate) struct Member {
    child: Child,
    log: PathBuf,
}

impl Member {
    /// Starts one, and waits until it asks who leads.
    pub(crate) async fn start(world: &World, name: &str, more: &[&str]) -> anyhow::Result<Member> {
        let (mut command, log) = world.controller_command(name)?;
        let child = command.args(more).spawn().context("cannot start a controller")?;
        let member = Member { child, log };
        world.until("the controller asks who leads", async || Ok(member.identity())).await?;
        Ok(member)
    }

    /// What it said so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn said(&self, message: &str) -> Option<Value> {
        let log = self.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.into_iter().find(|line| line["message"].as_str().is_some_and(|said| said.starts_with(message)))
    }

    /// Waits until it says this.
    pub(crate) async fn until_said(&self, world: &World, message: &str) -> anyhow::Result<Value> {
        let outcome = world.until(&format!("a controller says `{message}`"), async || Ok(self.said(message))).await;
        outcome.with_context(|| self.log())
    }

    /// Its name in the Lease and in the audit log.
    pub(crate) fn identity(&self) -> Option<String> {
        Some(self.said("starting leader election")?["identity"].as_str()?.to_owned())
    }

    /// Where it says how it is.
    pub(crate) fn health(&self) -> Option<String> {
        let address = self.said("serving health")?["address"].as_str()?.to_owned();
        Some(address.replace("0.0.0.0", "127.0.0.1"))
    }

    /// Where it serves metrics.
    pub(crate) fn metrics(&self) -> Option<SocketAddr> {
        let address = self.said("serving metrics")?["address"].as_str()?.replace("0.0.0.0", "127.0.0.1");
        address.parse().ok()
    }

    /// Sends it a signal by its name.
    pub(crate) fn signal(&self, name: &str) -> anyhow::Result<()> {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status()?;
        ensure!(status.success(), "kill -{name} failed");
        Ok(())
    }

    /// Waits until it ended.
    pub(crate) async fn ended(&mut self, within: Duration) -> anyhow::Result<ExitStatus> {
        let child = &mut self.child;
        let wait = async {
            loop {
                if let Some(status) = child.try_wait()? {
                    return Ok(status);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        match tokio::time::timeout(within, wait).await {
            Ok(outcome) => outcome,
            Err(_) => anyhow::bail!("it runs after {within:?}\n{}", self.log()),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // A test that failed must not leave a controller behind; this ends a frozen one too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the Lease says.
pub(crate) async fn lease(world: &World) -> anyhow::Result<LeaseSpec> {
    let leases: Api<Lease> = Api::namespaced(world.admin.clone(), LEASE.0);
    leases.get(LEASE.1).await?.spec.context("the Lease says nothing")
}

/// Waits until this one holds the Lease.
pub(crate) async fn until_leads(world: &World, member: &Member) -> anyhow::Result<LeaseSpec> {
    let identity = member.identity();
    let outcome = world.until("another holds the Lease", async || {
        // A server that was frozen may still stumble when it is asked.
        Ok(lease(world).await.ok().filter(|lease| lease.holder_identity == identity))
    });
    outcome.await.with_context(|| member.log())
}
