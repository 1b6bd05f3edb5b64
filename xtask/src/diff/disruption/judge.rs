//! Are our rounds right? They are if Karpenter would do each of our commands, too, or could save nothing itself where ours does; if
//! nothing is left that it would do; and if the nodes end up as cheap as its own with as few pods moved.

use std::fmt;

use super::report::{Checked, Run};

/// Prices are sums of numbers that are not exact.
const SLACK: f64 = 1e-6;

/// Our rounds of one scenario, judged.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Judged {
    /// What is wrong.
    pub(super) faults: Vec<String>,
    /// Whether we end up cheaper than every run of Karpenter, with more pods moved than any: neither can be held against the other.
    pub(super) is_cheaper_with_more_moves: bool,
    /// Commands that Karpenter would not come to, at a moment when it would do nothing.
    pub(super) own: Vec<String>,
    /// Whether all that is wrong is that our nodes end up dearer, that we move more pods, or that Karpenter does something else first.
    pub(super) is_excusable: bool,
    /// The rule of ours that is the reason for that, as far as it is proven.
    pub(super) rule: Option<&'static str>,
}

impl Judged {
    fn is_right(&self) -> bool {
        self.faults.is_empty() || (self.is_excusable && self.rule.is_some())
    }
}

/// Compares our rounds with several runs of Karpenter.
pub(super) fn judge(ours: &Run, theirs: &[Run], checked: Option<&Checked>) -> Judged {
    let mut judged = Judged::default();
    let fault = |judged: &mut Judged, text: String| judged.faults.push(text);
    if let Some(checked) = checked {
        judged.own.clone_from(&checked.own);
        judged.faults.extend(checked.faults.iter().cloned());
        let left = checked.left.iter().map(|left| format!("Karpenter would go on: {left}"));
        judged.faults.extend(left);
        if (checked.cost - ours.cost).abs() > SLACK {
            fault(&mut judged, format!("our nodes cost {}, and by Karpenter's count {}", ours.cost, checked.cost));
        }
    }
    if !ours.is_settled {
        fault(&mut judged, format!("after {} commands we are not done", ours.commands));
    }
    if let Some(other) = theirs.iter().find(|run| (run.before - ours.before).abs() > SLACK) {
        fault(
            &mut judged,
            format!("before the first round nodes cost {}, and by Karpenter's count {}", ours.before, other.before),
        );
    }
    let is_sound = judged.faults.is_empty();
    let early = checked.iter().flat_map(|checked| &checked.early).map(|command| format!("only ours: {command}"));
    judged.faults.extend(early);
    hold(&mut judged, ours, theirs);
    judged.is_excusable = is_sound && !judged.faults.is_empty();
    judged
}

/// Compares what the rounds come to.
fn hold(judged: &mut Judged, ours: &Run, theirs: &[Run]) {
    let dearest = theirs.iter().map(|run| run.cost).fold(0.0, f64::max);
    let cheapest = theirs.iter().map(|run| run.cost).fold(f64::MAX, f64::min);
    if ours.cost > dearest + SLACK {
        judged.faults.push(format!("our nodes cost {:.5} in the end, Karpenter's at most {dearest:.5}", ours.cost));
        return;
    }
    // A run that ends up cheaper than ours may well have moved more, or less; it is held to its own cost.
    let no_better = theirs.iter().filter(|run| run.cost >= ours.cost - SLACK);
    let most = no_better.map(|run| run.moves).max().unwrap_or_default();
    if ours.moves > most {
        if ours.cost < cheapest - SLACK {
            judged.is_cheaper_with_more_moves = true;
        } else {
            judged.faults.push(format!(
                "we move {} pods, Karpenter at most {most} for that cost ({:.5})",
                ours.moves, ours.cost
            ));
        }
    }
}

/// What all scenarios come to.
#[derive(Debug, Default)]
pub(super) struct Totals {
    right: usize,
    wrong: usize,
    cheaper: usize,
    by_rule: usize,
    before: f64,
    cost: (f64, f64),
    moves: (usize, usize),
    /// Moved pods of scenarios that end as cheap as Karpenter's median. Its moves at one cost differ by chance.
    level_moves: (usize, usize),
    commands: (usize, usize),
    own: usize,
    stuck: usize,
}

impl Totals {
    pub(super) fn add(&mut self, judged: &Judged, ours: &Run, theirs: &[Run]) {
        match (judged.is_right(), judged.rule, judged.is_cheaper_with_more_moves) {
            (false, ..) => self.wrong += 1,
            (true, Some(_), _) => self.by_rule += 1,
            (true, None, true) => self.cheaper += 1,
            (true, None, false) => self.right += 1,
        }
        self.before += ours.before;
        let cost = median(theirs.iter().map(|run| run.cost), f64::total_cmp);
        self.cost = (self.cost.0 + ours.cost, self.cost.1 + cost);
        let moves = median(theirs.iter().map(|run| run.moves), usize::cmp);
        self.moves = (self.moves.0 + ours.moves, self.moves.1 + moves);
        if (ours.cost - cost).abs() <= SLACK {
            self.level_moves = (self.level_moves.0 + ours.moves, self.level_moves.1 + moves);
        }
        self.own += judged.own.len();
        self.stuck += usize::from(theirs.iter().any(|run| run.is_stuck));
        let commands = median(theirs.iter().map(|run| run.commands), usize::cmp);
        self.commands = (self.commands.0 + ours.commands, self.commands.1 + commands);
    }

    pub(super) fn is_right(&self) -> bool {
        self.wrong == 0 && self.cost.0 <= self.cost.1 + SLACK
    }
}

fn median<T: Copy + Default>(values: impl Iterator<Item = T>, compare: impl FnMut(&T, &T) -> std::cmp::Ordering) -> T {
    let mut values: Vec<T> = values.collect();
    values.sort_by(compare);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} right, {} wrong, {} cheaper with more moves, {} different by a rule of ours\ncost: {:.3} before; after: {:.3}, Karpenter {:.3}\n\
             moved pods: {}, Karpenter {}; where both cost the same: {}, Karpenter {}\n\
             commands: {}, Karpenter {}; {} of ours where Karpenter would do nothing; \
             in {} scenarios it tries for ever to create a node that cannot be launched",
            self.right,
            self.wrong,
            self.cheaper,
            self.by_rule,
            self.before,
            self.cost.0,
            self.cost.1,
            self.moves.0,
            self.moves.1,
            self.level_moves.0,
            self.level_moves.1,
            self.commands.0,
            self.commands.1,
            self.own,
            self.stuck
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(cost: f64, moves: usize) -> Run {
        Run { before: 9.0, cost, moves, commands: 1, is_settled: true, is_stuck: false }
    }

    #[test]
    fn rounds_are_held_to_the_dearest_run_and_its_moves() {
        let theirs = [run(2.0, 5), run(3.0, 4)];
        assert_eq!(judge(&run(2.0, 5), &theirs, None), Judged::default());
        assert_eq!(judge(&run(3.0, 4), &theirs, None), Judged::default());
        assert!(judge(&run(3.1, 0), &theirs, None).faults[0].contains("in the end"));
        assert!(judge(&run(3.0, 5), &theirs, None).faults[0].contains("we move 5 pods"));
    }

    #[test]
    fn a_cheaper_end_with_more_moves_is_told_apart() {
        assert!(judge(&run(1.0, 6), &[run(2.0, 5)], None).is_cheaper_with_more_moves);
        assert_eq!(judge(&run(1.0, 5), &[run(2.0, 5)], None), Judged::default());
    }

    fn checked(faults: &[&str], own: &[&str], left: &[&str]) -> Checked {
        let [faults, own, left] = [faults, own, left].map(|texts| texts.iter().map(ToString::to_string).collect());
        Checked { faults, own, early: Vec::new(), left, cost: 2.0 }
    }

    #[test]
    fn what_karpenter_has_against_a_command_is_a_fault() {
        let judged = judge(&run(2.0, 5), &[run(2.0, 5)], Some(&checked(&["x"], &[], &["y"])));
        assert_eq!(judged.faults, ["x", "Karpenter would go on: y"]);
    }

    #[test]
    fn what_we_do_where_karpenter_would_do_nothing_is_counted_and_no_fault() {
        let (ours, theirs) = (run(2.0, 6), [run(3.0, 5)]);
        let judged = judge(&ours, &theirs, Some(&checked(&[], &["x"], &[])));
        assert_eq!((&judged.faults[..], judged.is_cheaper_with_more_moves), (&[][..], true));
        let mut totals = Totals::default();
        totals.add(&judged, &ours, &theirs);
        assert!(totals.is_right() && totals.to_string().contains("1 of ours where Karpenter would do nothing"));
        totals.add(&judge(&run(2.0, 5), &[run(2.0, 7)], None), &run(2.0, 5), &[run(2.0, 7)]);
        assert!(totals.to_string().contains("moved pods: 11, Karpenter 12; where both cost the same: 5, Karpenter 7"));
    }

    #[test]
    fn a_dearer_end_is_right_only_by_a_rule_and_only_if_nothing_else_is_wrong() {
        let (ours, theirs) = (run(2.5, 6), [run(2.0, 5)]);
        let mut judged = judge(&Run { cost: 2.0, ..ours.clone() }, &theirs, Some(&checked(&["x"], &[], &[])));
        assert!(!judged.is_excusable && !judged.is_right());
        let early = Checked { early: vec!["y".to_owned()], ..checked(&[], &[], &[]) };
        judged = judge(&Run { cost: 2.0, ..theirs[0].clone() }, &theirs, Some(&early));
        assert!(judged.is_excusable && !judged.is_right());
        judged = judge(&ours, &theirs, None);
        assert!(judged.is_excusable && !judged.is_right());
        judged.rule = Some("a rule");
        assert!(judged.is_right());
    }
}
