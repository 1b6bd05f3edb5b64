//! Is there an order in which kube-scheduler binds all planned pods without breaking a spread constraint?
//!
//! Pods are bound one by one. One whose domain is too full waits until the emptiest domain has more pods. In a domain, pods
//! that allow little skew go before those that allow more, and these before pods that are only counted: so with one
//! constraint every order that exists is found, and it does not matter in which order domains are filled. Each pod waits in
//! one line at a time, and only the first of a line is asked again, so the work grows with the number of pods. Pods that count
//! for one constraint and obey another may need another order: whoever is left is bound first in another replay.
//!
//! Constraints on several labels may need an order that is not found this way. So each label is judged by itself, and that pods
//! wait for each other across labels is not found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenon_model::PodKey;

use super::placed::{Domains, Placed};
use super::spread_counts::Groups;
use super::terms::{pods, words};

/// A group and a domain in which pods wait.
type Line = (usize, usize);

/// So often it is tried to bind those first that were left.
const ROUNDS: usize = 8;

struct Replay<'p, 'a> {
    placed: &'p Placed<'a>,
    groups: Groups<'p, 'a>,
    /// Pods by the skew they allow.
    waiting: BTreeMap<Line, BTreeSet<(u32, usize)>>,
    /// Lines whose first pod may have room now. They come before pods that were not asked yet: whoever is in a line stays
    /// ahead of those.
    called: BTreeSet<Line>,
    /// Pods on nodes without the label.
    nowhere: Vec<usize>,
}

enum Answer {
    Binds,
    Waits { line: Line, max_skew: u32 },
    Never,
}

/// Pods of the plan that can never be bound where they are, and why.
pub(super) fn broken<'a>(
    placed: &Placed<'a>,
    domains: &BTreeMap<&'a str, Domains<'_>>,
) -> Vec<(&'a Arc<PodKey>, String)> {
    let mut broken: BTreeMap<usize, String> = BTreeMap::new();
    for label in domains.keys() {
        let Some(replay) = Replay::best(placed, domains, label) else { continue };
        for pod in replay.left() {
            broken.entry(pod).or_insert_with(|| replay.why(pod));
        }
    }
    broken.into_iter().map(|(pod, why)| (&placed.planned[pod].pod.key, why)).collect()
}

impl<'p, 'a> Replay<'p, 'a> {
    /// The replay that leaves the fewest pods: whoever is left is bound before the others in the next one.
    fn best(
        placed: &'p Placed<'a>,
        domains: &'p BTreeMap<&'a str, Domains<'_>>,
        label: &str,
    ) -> Option<Replay<'p, 'a>> {
        let mut first: BTreeSet<usize> = BTreeSet::new();
        let mut best: Option<Replay<'p, 'a>> = None;
        for _ in 0..ROUNDS {
            let groups = Groups::of(placed, domains, label);
            if groups.all.is_empty() {
                return None;
            }
            let (waiting, called) = (BTreeMap::new(), BTreeSet::new());
            let mut replay = Replay { placed, groups, waiting, called, nowhere: Vec::new() };
            replay.bind_all(&first);
            let before = first.len();
            first.extend(replay.left());
            if best.as_ref().is_none_or(|best| replay.left().count() < best.left().count()) {
                best = Some(replay);
            }
            if first.len() == before {
                break;
            }
        }
        best
    }

    /// Pods that are not bound.
    fn left(&self) -> impl Iterator<Item = usize> {
        let waiting = self.waiting.values().flatten().map(|(_, pod)| *pod);
        waiting.chain(self.nowhere.iter().copied())
    }

    fn bind_all(&mut self, first: &BTreeSet<usize>) {
        let own = |class: usize| &self.groups.own[class];
        let concerned = |class: usize| !own(class).is_empty() || !self.groups.counting[class].is_empty();
        let skew = |class: usize| own(class).iter().map(|own| own.max_skew).min().unwrap_or(u32::MAX);
        let pods = self.placed.planned.iter().enumerate().filter(|(_, planned)| concerned(planned.class));
        let place = |pod: usize, class: usize| (!first.contains(&pod), skew(class), pod);
        let mut order: Vec<(bool, u32, usize)> = pods.map(|(pod, planned)| place(pod, planned.class)).collect();
        order.sort_unstable();
        for (_, _, pod) in order {
            self.ask(pod, None);
            self.ask_lines();
        }
        while self.bind_out_of_turn() {
            self.ask_lines();
        }
    }

    fn ask_lines(&mut self) {
        while let Some(line) = self.called.pop_first() {
            let Some(pods) = self.waiting.get_mut(&line) else { continue };
            let first = pods.pop_first();
            if pods.is_empty() {
                self.waiting.remove(&line);
            }
            if let Some((_, pod)) = first {
                self.ask(pod, Some(line));
            }
        }
    }

    fn ask(&mut self, pod: usize, from: Option<Line>) {
        let answer = match self.by_its_constraints(pod) {
            Answer::Binds => self.by_its_turn(pod),
            other => other,
        };
        let to = match answer {
            Answer::Waits { line, max_skew } => {
                self.waiting.entry(line).or_default().insert((max_skew, pod));
                Some(line)
            }
            Answer::Never => {
                self.nowhere.push(pod);
                None
            }
            Answer::Binds => {
                self.bind(pod);
                None
            }
        };
        // Whoever leaves a line makes room for the next.
        self.called.extend(from.filter(|from| to != Some(*from)));
    }

    /// Whether its constraints hold where it is.
    fn by_its_constraints(&self, pod: usize) -> Answer {
        let planned = &self.placed.planned[pod];
        for own in &self.groups.own[planned.class] {
            let group = &self.groups.all[own.group];
            let Some(domain) = group.domains.of_node[planned.node] else { return Answer::Never };
            let pods = group.pods_in(domain).saturating_add(u32::from(own.is_counted));
            if pods > group.lowest().saturating_add(own.max_skew) {
                return Answer::Waits { line: (own.group, domain), max_skew: own.max_skew };
            }
        }
        Answer::Binds
    }

    /// Whether nobody who allows less skew waits where it would count.
    fn by_its_turn(&self, pod: usize) -> Answer {
        let planned = &self.placed.planned[pod];
        for group in &self.groups.counting[planned.class] {
            let Some(domain) = self.groups.all[*group].counted_in(planned.node) else { continue };
            let line = (*group, domain);
            let own = self.groups.own[planned.class].iter().filter(|own| own.group == *group);
            let max_skew = own.map(|own| own.max_skew).min().unwrap_or(u32::MAX);
            let first = self.waiting.get(&line).and_then(BTreeSet::first);
            if first.is_some_and(|(less, _)| *less < max_skew) {
                return Answer::Waits { line, max_skew };
            }
        }
        Answer::Binds
    }

    fn bind(&mut self, pod: usize) {
        let planned = &self.placed.planned[pod];
        for group in &self.groups.counting[planned.class] {
            if self.groups.all[*group].add(planned.node) {
                self.called.extend(self.waiting.range((*group, 0)..(group + 1, 0)).map(|(line, _)| *line));
            }
        }
    }

    /// Where nothing moves any more, those who only let others go first need not do so. Whether there were any.
    fn bind_out_of_turn(&mut self) -> bool {
        let lines = self.waiting.iter().flat_map(|(line, pods)| pods.iter().map(|(skew, pod)| (*pod, *skew, *line)));
        let mut all: Vec<(usize, u32, Line)> = lines.collect();
        all.sort_unstable();
        let mut is_any = false;
        for (pod, skew, line) in all {
            let still_waits = |pods: &BTreeSet<(u32, usize)>| pods.contains(&(skew, pod));
            if !self.waiting.get(&line).is_some_and(still_waits)
                || !matches!(self.by_its_constraints(pod), Answer::Binds)
            {
                continue;
            }
            self.waiting.entry(line).or_default().remove(&(skew, pod));
            self.called.insert(line);
            self.bind(pod);
            is_any = true;
        }
        is_any
    }

    fn why(&self, pod: usize) -> String {
        let planned = &self.placed.planned[pod];
        let own = &self.groups.own[planned.class];
        let Answer::Waits { line: (index, domain), max_skew } = self.by_its_constraints(pod) else {
            let groups = own.iter().map(|own| &self.groups.all[own.group]);
            let without =
                groups.filter(|group| group.domains.of_node[planned.node].is_none()).map(|group| group.spread);
            let label = without.map(|spread| spread.label.as_str()).next().unwrap_or_default();
            return format!("breaks its topology spread constraint on {label}: its node has no label {label}");
        };
        let group = &self.groups.all[index];
        let (label, what) = (&group.spread.label, words(group.spread.selector.as_ref()));
        let name = group.domains.names[domain];
        let selected = pods(usize::try_from(group.pods_in(domain)).unwrap_or(usize::MAX), "selected ");
        let lowest = match (group.has_too_few(), group.emptiest()) {
            (true, _) => {
                format!("the minimum is 0, because there are fewer domains ({}) than minDomains", group.size())
            }
            (false, Some(emptiest)) => format!("the minimum is {} in {emptiest}", group.lowest()),
            (false, None) => "there is no other domain".to_owned(),
        };
        format!(
            "exceeds maxSkew {max_skew} of its topology spread constraint on {label} for {what}: \
             {label}={name} has {selected} besides it, and {lowest}"
        )
    }
}
