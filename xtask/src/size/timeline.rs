//! What each product cost in a build, and how long the build waited for it alone.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::unit::Unit;

/// One build from start to end.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Build {
    /// Processor time of cargo and everything it started.
    pub(crate) cpu_s: f64,
    pub(crate) wall_s: f64,
    pub(crate) units: Vec<Unit>,
}

/// What the runs of the compiler for one product cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Cost {
    pub(crate) cpu_s: f64,
    pub(crate) wall_s: f64,
    /// While nothing else was compiled. What has much of it keeps the other cores waiting.
    pub(crate) alone_s: f64,
}

impl Build {
    /// The processor time no compiler used: build scripts at work, what they start (a C compiler), and cargo itself.
    pub(crate) fn rest_s(&self) -> f64 {
        self.cpu_s - self.units.iter().map(|unit| unit.cpu_s).sum::<f64>()
    }

    /// How many cores were busy on average.
    pub(crate) fn busy_cores(&self) -> f64 {
        if self.wall_s > 0.0 { self.cpu_s / self.wall_s } else { 0.0 }
    }

    /// How many packages were compiled, whatever of them.
    pub(crate) fn packages(&self) -> usize {
        self.units.iter().map(|unit| &unit.what.package).collect::<BTreeSet<_>>().len()
    }

    /// The names of the crates that were compiled, with underscores.
    pub(crate) fn crates(&self) -> BTreeSet<&str> {
        self.units.iter().map(|unit| unit.what.name.as_str()).collect()
    }

    /// The cost of each product. A package that is compiled for build scripts and for the program is one product.
    pub(crate) fn costs(&self) -> BTreeMap<String, Cost> {
        let mut costs: BTreeMap<String, Cost> = BTreeMap::new();
        for (unit, alone_s) in self.units.iter().zip(alone(&self.units)) {
            let cost = costs.entry(unit.what.to_string()).or_default();
            cost.cpu_s += unit.cpu_s;
            cost.wall_s += unit.end_s - unit.begin_s;
            cost.alone_s += alone_s;
        }
        costs
    }
}

/// For each run, the seconds in which no other one was under way.
fn alone(units: &[Unit]) -> Vec<f64> {
    let mut alone = vec![0.0; units.len()];
    let begins = units.iter().enumerate().map(|(index, unit)| (unit.begin_s, index));
    let ends = units.iter().enumerate().map(|(index, unit)| (unit.end_s, index));
    let mut moments: Vec<(f64, usize)> = begins.chain(ends).collect();
    moments.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut under_way: BTreeSet<usize> = BTreeSet::new();
    let mut last = 0.0;
    for (moment, index) in moments {
        if let (1, Some(sum)) = (under_way.len(), under_way.first().and_then(|only| alone.get_mut(*only))) {
            *sum += moment - last;
        }
        // The first moment of a run is its begin, the second its end.
        if !under_way.remove(&index) {
            under_way.insert(index);
        }
        last = moment;
    }
    alone
}

#[cfg(test)]
mod tests {
    use super::super::unit::{Kind, Product};
    use super::*;

    fn unit(package: &str, begin_s: f64, end_s: f64) -> Unit {
        let what = Product { package: package.to_owned(), name: package.to_owned(), kind: Kind::Lib };
        Unit { what, cpu_s: (end_s - begin_s) * 2.0, begin_s, end_s }
    }

    #[test]
    fn a_product_is_alone_while_no_other_is_compiled() {
        let units = [unit("a", 0.0, 4.0), unit("b", 1.0, 2.0), unit("c", 6.0, 9.0), unit("d", 8.0, 9.0)];
        assert_eq!(alone(&units), [3.0, 0.0, 2.0, 0.0]);
    }

    #[test]
    fn runs_for_the_same_product_are_added() {
        let units = vec![unit("a", 0.0, 1.0), unit("b", 1.0, 2.0), unit("a", 2.0, 5.0)];
        let build = Build { cpu_s: 12.0, wall_s: 6.0, units };
        assert_eq!(build.costs().get("a lib"), Some(&Cost { cpu_s: 8.0, wall_s: 4.0, alone_s: 4.0 }));
        assert_eq!(build.packages(), 2);
        assert_eq!(build.busy_cores(), 2.0);
        assert_eq!(build.rest_s(), 2.0);
    }
}
