//! A plan for people: what is made and for whom, what goes where there is room, what waits and why.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::pod_names::summary;
use super::report::{NewClaim, Report, Waiting};

/// A cell is cut before it pushes the rest off a screen.
const CELL_MAX: usize = 48;
/// How far columns stand apart.
const GAP: &str = "   ";

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let mut page = String::new();
    new_nodes(report, &mut page);
    existing_nodes(report, &mut page);
    waiting(report, &mut page);
    totals(report, &mut page);
    page
}

fn new_nodes(report: &Report, page: &mut String) {
    if report.new_node_claims.is_empty() {
        page.push_str("No new nodes.\n");
        return;
    }
    let _ = writeln!(page, "New nodes: {}\n", report.new_node_claims.len());
    let heads = ["", "NODEPOOL", "TYPE", "ZONE", "CAPACITY", "PRICE", "CPU", "MEMORY", "PODS"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    let mut groups: Vec<(&NewClaim, usize, Vec<&str>)> = Vec::new();
    for claim in &report.new_node_claims {
        let pods = claim.pods.iter().map(String::as_str);
        match groups.iter_mut().find(|(other, ..)| looks_alike(other, claim)) {
            Some((_, count, all)) => {
                *count += 1;
                all.extend(pods);
            }
            None => groups.push((claim, 1, pods.collect())),
        }
    }
    for (claim, count, pods) in groups {
        let offering = &claim.offering;
        let amount = |resource: &str| claim.requests.get(resource).map_or("-".to_owned(), |text| shown(text));
        rows.push(vec![
            format!("{count} ×"),
            claim.node_pool.clone(),
            or_dash(&offering.instance_type),
            or_dash(&offering.zone),
            or_dash(&offering.capacity_type),
            price(offering.price),
            amount("cpu"),
            amount("memory"),
            summary(pods),
        ]);
    }
    lay_out(&rows, page);
}

/// Whether two new nodes differ in their pods only.
fn looks_alike(a: &NewClaim, b: &NewClaim) -> bool {
    a.node_pool == b.node_pool
        && a.offering == b.offering
        && a.requests == b.requests
        && a.requirements == b.requirements
}

fn existing_nodes(report: &Report, page: &mut String) {
    if report.existing_nodes.is_empty() {
        return;
    }
    let _ = writeln!(page, "\nOn nodes that are there: {}\n", count(placed(report), "pod"));
    let mut rows = vec![vec!["NODE".to_owned(), "PODS".to_owned()]];
    for node in &report.existing_nodes {
        rows.push(vec![node.name.clone(), summary(node.pods.iter().map(String::as_str))]);
    }
    lay_out(&rows, page);
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
        let reasons = waiting.reasons.iter().map(String::as_str).collect();
        by_reason.entry((reasons, mark(waiting))).or_default().push(&waiting.pod);
    }
    for ((reasons, mark), pods) in by_reason {
        let _ = writeln!(page, "  {}{mark}", summary(pods));
        for reason in reasons {
            let _ = writeln!(page, "      {reason}");
        }
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
        "\n{}: {made} on {}, {} on nodes that are there, {} pending; price of the new nodes {}",
        count(stats.pods, "pod"),
        count(stats.nodes, "new node"),
        placed(report),
        report.unschedulable.len(),
        price(stats.cost)
    );
    let _ = writeln!(
        page,
        "solved in {}, after {} to read and {} to prepare",
        time(stats.solve_micros),
        time(stats.load_micros),
        time(stats.build_micros)
    );
}

fn lay_out(rows: &[Vec<String>], page: &mut String) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default().min(CELL_MAX)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (index, cell) in row.iter().enumerate() {
            // The last column may be as long as it likes: nothing stands after it.
            let is_last = index + 1 == row.len();
            let cell = if is_last { cell.clone() } else { cut(cell) };
            let width = if is_last { 0 } else { widths.get(index).copied().unwrap_or_default() };
            let _ = write!(line, "{}{cell:<width$}", if index == 0 { "  " } else { GAP });
        }
        page.push_str(line.trim_end());
        page.push('\n');
    }
}

fn cut(cell: &str) -> String {
    if cell.chars().count() <= CELL_MAX {
        return cell.to_owned();
    }
    cell.chars().take(CELL_MAX - 1).chain(['…']).collect()
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

/// Four digits are enough to tell prices apart; zeros at the end are not.
fn price(price: f64) -> String {
    let text = format!("{price:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// An amount as people say it: a plain number of bytes in GiB or MiB.
fn shown(text: &str) -> String {
    match text.parse::<u64>() {
        Ok(bytes) if bytes >= 1 << 20 => {
            let (power, unit) = if bytes >= 1 << 30 { (30, "GiB") } else { (20, "MiB") };
            let tenths = (u128::from(bytes) * 10) >> power;
            if tenths % 10 == 0 {
                format!("{} {unit}", tenths / 10)
            } else {
                format!("{}.{} {unit}", tenths / 10, tenths % 10)
            }
        }
        _ => text.to_owned(),
    }
}

fn time(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        _ => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}
