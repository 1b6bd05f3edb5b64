//! Which nodes would be disrupted, for people: the moves, and the nodes that stay by reason.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::disruption_report::{DisruptionReport, PodMove, RoundCommand};
use super::pod_names::summary;
use super::table_text::{count, price, time, wrap};

/// Moves and reasons that are listed before the rest is only counted. JSON has them all.
const LISTED_MAX: usize = 20;
/// How far what belongs to a line stands from the left edge.
const INDENT: usize = 6;

/// The whole page.
pub(super) fn page(report: &DisruptionReport) -> String {
    let mut page = String::new();
    moves(report, &mut page);
    kept(report, &mut page);
    totals(report, &mut page);
    page
}

fn moves(report: &DisruptionReport, page: &mut String) {
    if report.rounds.is_empty() {
        page.push_str("No node would be disrupted.\n");
        return;
    }
    let mut left = LISTED_MAX;
    for (number, round) in report.rounds.iter().enumerate() {
        let listed = round.commands.iter().take(left);
        left = left.saturating_sub(round.commands.len());
        for (index, command) in listed.enumerate() {
            if index == 0 && report.rounds.len() > 1 {
                let _ = writeln!(page, "Round {}", number + 1);
            }
            one(command, page);
        }
    }
    let all: usize = report.rounds.iter().map(|round| round.commands.len()).sum();
    if all > LISTED_MAX {
        let _ = writeln!(page, "  … and {}; use -o json to list all", count(all - LISTED_MAX, "more move"));
    }
}

fn one(command: &RoundCommand, page: &mut String) {
    let nodes: Vec<String> =
        command.nodes.iter().map(|node| format!("{} ({})", node.name, node.instance_type)).collect();
    let mut line = match command.replacements.as_slice() {
        [] if command.action.is_some() => format!("Reboot {}", nodes.join(", ")),
        [] => format!("Delete {}", nodes.join(", ")),
        several => {
            let new = several.iter().map(|new| match new.offering.instance_type.as_str() {
                "" => format!("a new node of NodePool {}", new.node_pool),
                size => format!("{size} {} of NodePool {}", new.offering.capacity_type, new.node_pool),
            });
            format!("Replace {} by {}", nodes.join(", "), new.collect::<Vec<_>>().join(", "))
        }
    };
    let _ = write!(line, ": {}, saves {}", command.method, price(command.savings));
    if let Some(condition) = &command.condition {
        let _ = write!(line, ", {condition}");
    }
    if let Some(score) = command.score {
        let _ = write!(line, ", score {score:.2}");
    }
    wrap(&line, 2, page);
    let mut to: BTreeMap<(bool, &str), Vec<&str>> = BTreeMap::new();
    for PodMove { pod, node, .. } in &command.moves {
        to.entry((node.is_none(), node.as_deref().unwrap_or_default())).or_default().push(pod);
    }
    for ((is_new, node), pods) in to {
        let place = if is_new { "the new nodes" } else { node };
        wrap(&format!("{} to {place}", summary(pods.into_iter())), INDENT, page);
    }
}

fn kept(report: &DisruptionReport, page: &mut String) {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in &report.kept {
        for why in &node.reasons {
            let nodes = by_reason.entry(&why.reason).or_default();
            // Two methods often have one reason.
            if nodes.last() != Some(&node.name.as_str()) {
                nodes.push(&node.name);
            }
        }
    }
    if by_reason.is_empty() {
        return;
    }
    let _ = writeln!(page, "\nNodes that stay: {}\n", report.kept.len());
    let mut groups: Vec<(&str, Vec<&str>)> = by_reason.into_iter().collect();
    groups.sort_by_key(|(_, nodes)| Reverse(nodes.len()));
    for (reason, nodes) in groups.iter().take(LISTED_MAX) {
        let (shown, rest) = nodes.split_at(nodes.len().min(LISTED_MAX));
        let more = if rest.is_empty() { String::new() } else { format!(" … and {} more", rest.len()) };
        wrap(&format!("{}{more}", shown.join(", ")), 2, page);
        wrap(reason, INDENT, page);
    }
    if groups.len() > LISTED_MAX {
        let _ = writeln!(page, "  … and {}; use -o json to list all", count(groups.len() - LISTED_MAX, "more reason"));
    }
}

fn totals(report: &DisruptionReport, page: &mut String) {
    let stats = &report.stats;
    let end =
        if stats.settled { "no further move is possible now" } else { "more may be possible afterwards; see --rounds" };
    let _ = writeln!(
        page,
        "\n{}: {} moved\nnodes: {} before, {} after\nprice: {} before, {} after\n{end}\ntime: {} for {}",
        count(stats.commands, "move"),
        count(stats.moved_pods, "pod"),
        stats.nodes,
        stats.nodes_after,
        price(stats.cost),
        price(stats.cost_after),
        time(stats.scan_micros),
        count(stats.simulated, "simulation"),
    );
}
