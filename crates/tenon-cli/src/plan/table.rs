//! A plan for people: what is made and for whom, what goes where there is room, what waits and why.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::pod_names::summary;
use super::report::{NewClaim, Offering, Report, Waiting};
use super::table_text::{count, lay_out, or_dash, price, range, time, wrap};

/// Nodes and reasons that are listed before the rest is only counted. JSON has them all.
const LISTED_MAX: usize = 20;
/// How far what belongs to a row stands from the left edge.
const INDENT: usize = 6;

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let mut page = String::new();
    new_nodes(report, &mut page);
    existing_nodes(report, &mut page);
    waiting(report, &mut page);
    totals(report, &mut page);
    page
}

/// New nodes that differ in their pods only.
struct Alike<'a> {
    pool: &'a str,
    offering: &'a Offering,
    claims: Vec<&'a NewClaim>,
}

fn new_nodes(report: &Report, page: &mut String) {
    if report.new_node_claims.is_empty() {
        page.push_str(if report.stats.pods == 0 { "No pod waits for a node.\n" } else { "No new nodes.\n" });
        return;
    }
    let _ = writeln!(page, "New nodes: {}\n", report.new_node_claims.len());
    let groups = alike(&report.new_node_claims);
    let heads = ["", "NODEPOOL", "TYPE", "ZONE", "CAPACITY", "PRICE", "CPU REQ", "MEMORY REQ"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(groups.iter().take(LISTED_MAX).map(Alike::row));
    for (index, line) in lay_out(&rows).into_iter().enumerate() {
        let _ = writeln!(page, "{line}");
        let group = index.checked_sub(1).and_then(|index| groups.get(index));
        let pods = group.into_iter().flat_map(|group| group.claims.iter().flat_map(|claim| claim.pods.iter()));
        wrap(&summary(pods.map(String::as_str)), INDENT, page);
    }
    let rest = groups.get(LISTED_MAX..).unwrap_or_default();
    if !rest.is_empty() {
        let nodes = rest.iter().map(|group| group.claims.len()).sum();
        let _ = writeln!(page, "  … and {} of other kinds; -o json lists all", count(nodes, "node"));
    }
}

/// New nodes by what they are; the most of a kind first.
fn alike(claims: &[NewClaim]) -> Vec<Alike<'_>> {
    let mut groups: Vec<Alike<'_>> = Vec::new();
    for claim in claims {
        let is_same = |group: &&mut Alike<'_>| group.pool == claim.node_pool && *group.offering == claim.offering;
        match groups.iter_mut().find(is_same) {
            Some(group) => group.claims.push(claim),
            None => groups.push(Alike { pool: &claim.node_pool, offering: &claim.offering, claims: vec![claim] }),
        }
    }
    groups.sort_by_key(|group| Reverse(group.claims.len()));
    groups
}

impl Alike<'_> {
    fn row(&self) -> Vec<String> {
        let offering = self.offering;
        let amounts = |resource: &str| {
            range(self.claims.iter().filter_map(|claim| claim.requests.get(resource)).map(String::as_str), resource)
        };
        vec![
            format!("{} ×", self.claims.len()),
            self.pool.to_owned(),
            or_dash(&offering.instance_type),
            or_dash(&offering.zone),
            or_dash(&offering.capacity_type),
            price(offering.price),
            amounts("cpu"),
            amounts("memory"),
        ]
    }
}

fn existing_nodes(report: &Report, page: &mut String) {
    if report.existing_nodes.is_empty() {
        return;
    }
    let _ = writeln!(page, "\nOn nodes that are there: {}\n", count(placed(report), "pod"));
    for node in report.existing_nodes.iter().take(LISTED_MAX) {
        wrap(&node.name, 2, page);
        wrap(&summary(node.pods.iter().map(String::as_str)), INDENT, page);
    }
    let rest = report.existing_nodes.get(LISTED_MAX..).unwrap_or_default();
    if !rest.is_empty() {
        let pods = rest.iter().map(|node| node.pods.len()).sum();
        let _ =
            writeln!(page, "  … and {} on {} more; -o json lists all", count(pods, "pod"), count(rest.len(), "node"));
    }
}

fn placed(report: &Report) -> usize {
    report.existing_nodes.iter().map(|node| node.pods.len()).sum()
}

fn waiting(report: &Report, page: &mut String) {
    if report.unschedulable.is_empty() {
        return;
    }
    let _ = writeln!(page, "\nStill pending: {}\n", count(report.unschedulable.len(), "pod"));
    let mut by_reason: BTreeMap<(Vec<&str>, &str), Vec<&str>> = BTreeMap::new();
    for waiting in &report.unschedulable {
        let reasons = waiting.reasons.iter().map(|reason| in_short(reason)).collect();
        by_reason.entry((reasons, mark(waiting))).or_default().push(&waiting.pod);
    }
    let mut groups: Vec<_> = by_reason.into_iter().collect();
    groups.sort_by_key(|(_, pods)| Reverse(pods.len()));
    let (listed, rest) = groups.split_at(groups.len().min(LISTED_MAX));
    for ((reasons, mark), pods) in listed {
        wrap(&format!("{}{mark}", summary(pods.iter().copied())), 2, page);
        reasons.iter().for_each(|reason| wrap(reason, INDENT, page));
    }
    if !rest.is_empty() {
        let pods = rest.iter().map(|(_, pods)| pods.len()).sum();
        let _ = writeln!(page, "  … and {} for other reasons; -o json lists all", count(pods, "pod"));
    }
}

/// A reason without what the reader of a table knows: what the pod asks for, and, where room is short, its demands.
fn in_short(reason: &str) -> &str {
    let short = reason.find(", resources=").map_or(reason, |end| reason.get(..end).unwrap_or(reason));
    match (short.find(" wanted, at most "), short.find(", requirements=")) {
        (Some(_), Some(end)) => short.get(..end).unwrap_or(short),
        _ => short,
    }
}

fn mark(waiting: &Waiting) -> &'static str {
    match (waiting.rejected, waiting.deferred) {
        (true, _) => " (refused)",
        (false, true) => " (waits for reserved capacity)",
        (false, false) => "",
    }
}

fn totals(report: &Report, page: &mut String) {
    let stats = &report.stats;
    let made: usize = report.new_node_claims.iter().map(|claim| claim.pods.len()).sum();
    let _ = writeln!(
        page,
        "\n{}: {made} on {}, {} on nodes that are there, {} pending",
        count(stats.pods, "pod"),
        count(stats.nodes, "new node"),
        placed(report),
        report.unschedulable.len(),
    );
    let _ = writeln!(
        page,
        "price of the new nodes: {}\nsolved in {}, after {} to read and {} to prepare",
        price(stats.cost),
        time(stats.solve_micros),
        time(stats.load_micros),
        time(stats.build_micros)
    );
}
