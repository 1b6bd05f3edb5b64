//! How a scene reaches the audience: a picture that changes in place, or a line for each thing that happened.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::scene::{ClaimRow, Scene, State};

/// How wide a bar is.
const BAR: u32 = 32;

/// Shows scenes.
pub(crate) struct View {
    is_live: bool,
    is_shown: bool,
    /// Lines of the picture that stand on the screen.
    lines: usize,
    last: Option<Scene>,
}

impl View {
    pub(crate) fn new(is_live: bool, is_shown: bool) -> View {
        View { is_live, is_shown, lines: 0, last: None }
    }

    /// Says what is about to be shown.
    pub(crate) fn open(&mut self, pods: u32, hosts: u32, out: &mut dyn Write) -> io::Result<()> {
        if !self.is_shown {
            return Ok(());
        }
        writeln!(
            out,
            "A Kubernetes cluster without nodes, a Proxmox cluster with {}, and Tenon between them.",
            if hosts == 1 { "1 host".to_owned() } else { format!("{hosts} hosts") }
        )?;
        let what = match pods {
            1 => "1 pod is created; once it runs, it is deleted".to_owned(),
            _ => format!("{pods} pods are created; once they run, they are deleted"),
        };
        writeln!(out, "{what}. Everything except the controllers is simulated.\n")?;
        out.flush()
    }

    /// Shows a scene.
    pub(crate) fn show(&mut self, scene: &Scene, out: &mut dyn Write) -> io::Result<()> {
        if self.is_shown && self.is_live {
            self.draw(scene, out)?;
        } else if self.is_shown {
            self.print_changes(scene, out)?;
        }
        self.last = Some(scene.clone());
        out.flush()
    }

    fn draw(&mut self, scene: &Scene, out: &mut dyn Write) -> io::Result<()> {
        let picture = picture(scene);
        if self.lines > 0 {
            // Up to where the picture begins, and away with what stands below.
            write!(out, "\u{1b}[{}A\u{1b}[J", self.lines)?;
        }
        self.lines = picture.len();
        picture.iter().try_for_each(|line| writeln!(out, "{line}"))
    }

    fn print_changes(&self, scene: &Scene, out: &mut dyn Write) -> io::Result<()> {
        let at = format!("{:6.1} s ", scene.at.as_secs_f64());
        let nothing = BTreeMap::new();
        let (pending, running, claims) = match &self.last {
            Some(last) => (last.pending, last.running, &last.claims),
            None => (0, 0, &nothing),
        };
        if scene.pending > pending {
            writeln!(out, "{at} {} pending", pods(scene.pending))?;
        }
        for (name, row) in &scene.claims {
            if claims.get(name).map(|known| known.state) != Some(row.state) {
                writeln!(out, "{at} NodeClaim {name}: {}", progress(row))?;
            }
        }
        for (name, row) in claims.iter().filter(|(name, _)| !scene.claims.contains_key(*name)) {
            writeln!(out, "{at} NodeClaim {name}: deleted VM {}, seed image and NodeClaim", row.vmid)?;
        }
        if scene.running != running {
            writeln!(out, "{at} {} running", pods(scene.running))?;
        }
        Ok(())
    }
}

/// Pods, and the verb that goes with them.
fn pods(number: usize) -> String {
    if number == 1 { "1 pod is".to_owned() } else { format!("{number} pods are") }
}

fn progress(row: &ClaimRow) -> String {
    let ClaimRow { size, host, vmid, state } = row;
    match state {
        State::Planned => format!("creating {size} on {host} as VM {vmid}"),
        State::Booting => format!("VM {vmid} started on {host}"),
        State::Joined => "node registered".to_owned(),
        State::Ready => "node initialized, ready for pods".to_owned(),
        State::Draining => "node is empty; draining".to_owned(),
        State::Stopping => format!("node drained; stopping and destroying VM {vmid}"),
    }
}

fn picture(scene: &Scene) -> Vec<String> {
    let mut lines = vec![format!(
        "{:6.1} s   pods: {:3} pending  {:3} running     nodes: {:2}     VMs: {:2}",
        scene.at.as_secs_f64(),
        scene.pending,
        scene.running,
        scene.nodes,
        scene.vms
    )];
    lines.push(String::new());
    for host in &scene.hosts {
        let filled = (host.used * BAR).checked_div(host.cores).unwrap_or_default().min(BAR);
        let bar = |length: u32, sign: &str| sign.repeat(usize::try_from(length).unwrap_or_default());
        let (full, empty) = (bar(filled, "█"), bar(BAR - filled, "░"));
        lines.push(format!("  {:6} {full}{empty} {:3}/{} cores, {} VMs", host.name, host.used, host.cores, host.vms));
    }
    lines.push(String::new());
    for (name, row) in &scene.claims {
        lines.push(format!("  {name:16} {:16} {:6} VM {:<6} {}", row.size, row.host, row.vmid, word(row.state)));
    }
    lines
}

fn word(state: State) -> &'static str {
    match state {
        State::Planned => "creating",
        State::Booting => "starting",
        State::Joined => "registered",
        State::Ready => "ready",
        State::Draining => "draining",
        State::Stopping => "stopping",
    }
}
