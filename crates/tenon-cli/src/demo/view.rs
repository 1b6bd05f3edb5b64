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
            "A Kubernetes cluster without nodes, a Proxmox cluster of {hosts} hosts, and Tenon between them."
        )?;
        writeln!(
            out,
            "{pods} pods come; when they run, they go again. Everything is simulated but the controllers.\n"
        )?;
        out.flush()
    }

    /// Shows a scene.
    pub(crate) fn show(&mut self, scene: &Scene, out: &mut dyn Write) -> io::Result<()> {
        if self.is_shown && self.is_live {
            self.draw(scene, out)?;
        } else if self.is_shown {
            self.tell(scene, out)?;
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

    fn tell(&self, scene: &Scene, out: &mut dyn Write) -> io::Result<()> {
        let at = format!("{:6.1} s ", scene.at.as_secs_f64());
        let nothing = BTreeMap::new();
        let (pending, running, claims) = match &self.last {
            Some(last) => (last.pending, last.running, &last.claims),
            None => (0, 0, &nothing),
        };
        if scene.pending > pending {
            writeln!(out, "{at} {} pods wait for a node", scene.pending)?;
        }
        for (name, row) in &scene.claims {
            if claims.get(name).map(|known| known.state) != Some(row.state) {
                writeln!(out, "{at} {name}: {}", told(row))?;
            }
        }
        for (name, row) in claims.iter().filter(|(name, _)| !scene.claims.contains_key(*name)) {
            writeln!(out, "{at} {name}: gone, vm {} and all", row.vmid)?;
        }
        if scene.running != running {
            writeln!(out, "{at} {} pods run", scene.running)?;
        }
        Ok(())
    }
}

fn told(row: &ClaimRow) -> String {
    let ClaimRow { size, host, vmid, state } = row;
    match state {
        State::Planned => format!("a {size} is made on {host} as vm {vmid}"),
        State::Booting => format!("vm {vmid} boots on {host}"),
        State::Joined => "the node joined".to_owned(),
        State::Ready => "the node takes pods".to_owned(),
        State::Draining => "the node is empty, and is drained".to_owned(),
        State::Stopping => format!("vm {vmid} is stopped and destroyed"),
    }
}

fn picture(scene: &Scene) -> Vec<String> {
    let mut lines = vec![format!(
        "{:6.1} s   pods: {:3} waiting  {:3} running     nodes: {:2}     VMs: {:2}",
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
        lines.push(format!("  {name:16} {:16} {:6} vm {:<6} {}", row.size, row.host, row.vmid, word(row.state)));
    }
    lines
}

fn word(state: State) -> &'static str {
    match state {
        State::Planned => "being made",
        State::Booting => "booting",
        State::Joined => "joined",
        State::Ready => "ready",
        State::Draining => "draining",
        State::Stopping => "stopping",
    }
}
