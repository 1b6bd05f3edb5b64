//! What the demo comes to: numbers, and that nothing was left behind.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use serde::Serialize;

use super::Format;
use super::scene::{Scene, State};
use super::site::Site;

/// What the demo comes to.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    pods_placed: usize,
    vms_made: usize,
    vms_destroyed: usize,
    /// From the plan to a node that takes pods, on the demo's clock.
    seconds_to_ready_median: f64,
    seconds_to_ready_longest: f64,
    seconds_until_all_pods_ran: f64,
    proxmox_requests_per_vm: f64,
    leftovers: usize,
    simulated_seconds: f64,
    wall_seconds: f64,
    #[serde(skip)]
    planned: BTreeMap<String, Duration>,
    #[serde(skip)]
    ready: BTreeMap<String, Duration>,
}

impl Summary {
    /// Notes what a scene adds.
    pub(crate) fn note(&mut self, scene: &Scene) {
        if scene.running > self.pods_placed {
            self.pods_placed = scene.running;
            self.seconds_until_all_pods_ran = scene.at.as_secs_f64();
        }
        for (name, row) in &scene.claims {
            self.planned.entry(name.clone()).or_insert(scene.at);
            if row.state == State::Ready {
                self.ready.entry(name.clone()).or_insert(scene.at);
            }
        }
    }

    /// Adds what is known at the end.
    pub(crate) fn close(&mut self, site: &Site, wall: Duration) -> anyhow::Result<()> {
        let took = |(name, ready): (&String, &Duration)| {
            ready.saturating_sub(self.planned.get(name).copied().unwrap_or_default()).as_secs_f64()
        };
        let mut took: Vec<f64> = self.ready.iter().map(took).collect();
        took.sort_by(f64::total_cmp);
        self.seconds_to_ready_median = took.get(took.len() / 2).copied().unwrap_or_default();
        self.seconds_to_ready_longest = took.last().copied().unwrap_or_default();
        let requests = site.requests();
        (self.vms_made, self.vms_destroyed) = (requests.clones, requests.destroys);
        self.proxmox_requests_per_vm = per(requests.of_vms, requests.clones);
        self.leftovers = site.leftovers();
        self.simulated_seconds = site.elapsed().as_secs_f64();
        self.wall_seconds = wall.as_secs_f64();
        Ok(())
    }

    /// How much was left behind.
    pub(crate) fn leftovers(&self) -> usize {
        self.leftovers
    }

    /// Prints it.
    pub(crate) fn print(&self, format: Format, out: &mut dyn Write) -> anyhow::Result<()> {
        match format {
            Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(self)?)?,
            Format::Text => write!(
                out,
                "\n\
                 pods placed         {}, all running after {:.1} s\n\
                 VMs                 {} created, {} destroyed\n\
                 time to ready node  {:.1} s median, {:.1} s maximum\n\
                 Proxmox requests    {:.0} per VM, from clone to destroy\n\
                 left behind         {} VMs and volumes\n\
                 time                {:.0} s simulated, {:.1} s real\n",
                self.pods_placed,
                self.seconds_until_all_pods_ran,
                self.vms_made,
                self.vms_destroyed,
                self.seconds_to_ready_median,
                self.seconds_to_ready_longest,
                self.proxmox_requests_per_vm,
                self.leftovers,
                self.simulated_seconds,
                self.wall_seconds,
            )?,
        }
        Ok(out.flush()?)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a demo are small")]
fn per(requests: usize, vms: usize) -> f64 {
    if vms == 0 { 0.0 } else { requests as f64 / vms as f64 }
}
