//! A plan for people: the workloads, the new nodes and their pods, the existing nodes that take pods, and the pods that stay
//! pending.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::pod_names::summary;
use super::report::{NewClaim, Offering, Report, Unschedulable};
use super::table_text::{count, lay_out, or_dash, price, range, time, wrap};

/// Nodes and reasons that are listed before the rest is only counted. JSON has them all.
const LISTED_MAX: usize = 20;
/// How far what belongs to a row stands from the left edge.
const INDENT: usize = 6;

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let mut page = String::new();
    workloads(report, &mut page);
    new_nodes(report, &mut page);
    existing_nodes(report, &mut page);
    unschedulable(report, &mut page);
    totals(report, &mut page);
    page
}

fn workloads(report: &Report, page: &mut String) {
    report.workloads.iter().for_each(|line| wrap(line, 0, page));
    page.push_str(if report.workloads.is_empty() { "" } else { "\n" });
}

/// New nodes that differ in their pods only.
struct Alike<'a> {
    pool: &'a str,
    offering: &'a Offering,
    claims: Vec<&'a NewClaim>,
}

fn new_nodes(report: &Report, page: &mut String) {
    if report.new_node_claims.is_empty() {
        page.push_str(if report.stats.pods == 0 { "No pending pods.\n" } else { "No new nodes.\n" });
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
        let _ = writeln!(page, "  … and {} of other kinds; use -o json to list all", count(nodes, "node"));
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
    let _ = writeln!(page, "\nOn existing nodes: {}\n", count(placed(report), "pod"));
    for node in report.existing_nodes.iter().take(LISTED_MAX) {
        wrap(&node.name, 2, page);
        wrap(&summary(node.pods.iter().map(String::as_str)), INDENT, page);
    }
    let rest = report.existing_nodes.get(LISTED_MAX..).unwrap_or_default();
    if !rest.is_empty() {
        let pods = rest.iter().map(|node| node.pods.len()).sum();
        let _ = writeln!(
            page,
            "  … and {} on {}; use -o json to list all",
            count(pods, "pod"),
            count(rest.len(), "more node")
        );
    }
}

fn placed(report: &Report) -> usize {
    report.existing_nodes.iter().map(|node| node.pods.len()).sum()
}

fn unschedulable(report: &Report, page: &mut String) {
    if report.unschedulable.is_empty() {
        return;
    }
    let _ = writeln!(page, "\nUnschedulable: {}\n", count(report.unschedulable.len(), "pod"));
    let mut by_reason: BTreeMap<(Vec<&str>, &str), Vec<&str>> = BTreeMap::new();
    for found in &report.unschedulable {
        let reasons = found.reasons.iter().map(|reason| in_short(reason)).collect();
        by_reason.entry((reasons, mark(found))).or_default().push(&found.pod);
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
        let _ = writeln!(page, "  … and {} for other reasons; use -o json to list all", count(pods, "pod"));
    }
}

/// A reason without what the reader of a table knows: the requests of the pod, and, where room is short, its requirements.
fn in_short(reason: &str) -> &str {
    let short = reason.find(", resources=").map_or(reason, |end| reason.get(..end).unwrap_or(reason));
    match (short.find(" requested, but the largest instance type has "), short.find(", requirements=")) {
        (Some(_), Some(end)) => short.get(..end).unwrap_or(short),
        _ => short,
    }
}

fn mark(pod: &Unschedulable) -> &'static str {
    match (pod.rejected, pod.deferred) {
        (true, _) => " (rejected)",
        (false, true) => " (waiting for reserved capacity)",
        (false, false) => "",
    }
}

fn totals(report: &Report, page: &mut String) {
    let stats = &report.stats;
    let on_new: usize = report.new_node_claims.iter().map(|claim| claim.pods.len()).sum();
    let _ = writeln!(
        page,
        "\n{}: {on_new} on {}, {} on existing nodes, {} unschedulable",
        count(stats.pods, "pod"),
        count(stats.nodes, "new node"),
        placed(report),
        report.unschedulable.len(),
    );
    let _ = writeln!(
        page,
        "price of the new nodes: {}\ntime: {} to read, {} to prepare, {} to solve",
        price(stats.cost),
        time(stats.load_micros),
        time(stats.build_micros),
        time(stats.solve_micros)
    );
}
