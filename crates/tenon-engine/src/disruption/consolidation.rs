//! Which nodes may be consolidated, and what would come of it if some of them went?

use std::collections::BTreeSet;

use tenon_model::labels::CAPACITY_TYPE;
use tenon_model::{ConsolidationPolicy, NewNode, NodeStage, Plan, PodKey};

use super::blocked::DisruptionBlocked;
use super::candidates::{Class, Node, instance_type};
use super::command::{Command, Destination, Method, Move, Replacement};
use super::emptiness::{Wait, wait};
use super::further::Spill;
use super::kept::Kept;
use super::prices::{Certainty, Cheaper, replacement, sum};
use super::scan::Scan;
use crate::index::fixed_hash;
use crate::what_ifs::{Change, Destinations, MovedPods};

/// Which nodes are tried together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Search {
    /// Those that save most for what they cost.
    Row,
    /// One.
    Single,
    /// Any two, once no row and no single node is left.
    Pair,
}

impl Search {
    pub(super) fn method(self) -> Method {
        match self {
            Search::Row | Search::Pair => Method::MultiNode,
            Search::Single => Method::SingleNode,
        }
    }
}

impl<'s> Scan<'s> {
    /// Whether a node may be consolidated: what is asked of it before anything is simulated.
    pub(super) fn consolidatable(&self, node: &Node<'s>) -> Result<(), Kept> {
        let rules = node.eligible(Class::Graceful, self.snapshot)?;
        let pool = || rules.name.clone();
        if rules.is_static {
            return Err(Kept::Blocked(DisruptionBlocked::StaticPool { pool: pool() }));
        }
        let is_missing = |label: &&str| node.state.labels.get(label).is_none();
        if let Some(label) = [CAPACITY_TYPE, tenon_model::labels::ZONE].iter().find(|label| is_missing(label)) {
            return Err(Kept::UnknownPrice { what: format!("the node has no label {label}") });
        }
        if node.pool.is_none_or(|pool| instance_type(node.state, pool).is_none()) {
            let what = format!("NodePool {} does not offer its instance type any more", rules.name);
            return Err(Kept::UnknownPrice { what });
        }
        let is_over = self.waited(node)?;
        if rules.policy == ConsolidationPolicy::WhenEmpty {
            return Err(Kept::OnlyWhenEmpty { pool: pool() });
        }
        is_over
    }

    /// Whether `consolidateAfter` has passed; the outer error is a pool that never consolidates.
    pub(super) fn waited(&self, node: &Node<'s>) -> Result<Result<(), Kept>, Kept> {
        let Some(rules) = node.rules() else { return Ok(Ok(())) };
        let pool = rules.name.clone();
        match wait(&node.seen, rules, self.now) {
            Wait::Over => Ok(Ok(())),
            Wait::Until(until) => Ok(Err(Kept::Blocked(DisruptionBlocked::TooRecent { until }))),
            Wait::Never => Err(Kept::Blocked(DisruptionBlocked::ConsolidationDisabled { pool })),
            Wait::Invalid(fault) => {
                let text = fault.text.clone();
                Err(Kept::Blocked(DisruptionBlocked::InvalidConsolidateAfter { pool, text }))
            }
        }
    }

    /// Deletes these nodes, or replaces them by a cheaper one, if their pods go elsewhere.
    pub(super) fn consolidate(&mut self, search: Search, nodes: &[usize]) -> Result<(Command, Certainty), Kept> {
        let plan = self.what_if(nodes, Some(1), Destinations::Settled).ok_or(Kept::NeedsSeveral)?;
        self.all_placed(nodes, &plan)?;
        if let (Search::Single, [number]) = (search, nodes) {
            self.spills.insert(*number, Spill::of(&plan));
        }
        let going: Vec<&Node<'s>> = nodes.iter().map(|node| &self.nodes[*node]).collect();
        let (planned, certainty) = match plan.new_nodes.first() {
            None => (None, Certainty::Whatever),
            Some(new) => {
                let rule = Cheaper { search, gates: self.snapshot.disruption.gates, pools: &self.snapshot.pools };
                let (new, certainty) = replacement(new, &going, rule)?;
                (Some(new), certainty)
            }
        };
        let command = self.command(search.method(), nodes, (&plan, planned.into_iter().collect()));
        match self.has_failed(&command) {
            true => Err(Kept::ReplacementFailed),
            false => Ok((self.approved(command, nodes)?, certainty)),
        }
    }

    /// What would be planned if these nodes were gone; nothing if that needs too many new ones.
    pub(super) fn what_if(
        &mut self,
        nodes: &[usize],
        most_new_nodes: Option<usize>,
        destinations: Destinations,
    ) -> Option<Plan> {
        let names: Vec<&str> = nodes.iter().map(|node| self.nodes[*node].name()).collect();
        self.simulated += 1;
        let change =
            Change { remove: &names, most_new_nodes, pods: MovedPods::Free, destinations, ..Change::default() };
        self.what_ifs.plan(&change)
    }

    /// Whether the pods of these nodes are all placed, on nodes that take pods already or on new ones.
    pub(super) fn all_placed(&self, nodes: &[usize], plan: &Plan) -> Result<(), Kept> {
        if plan.unplaced.is_empty() && self.rising.is_empty() {
            return Ok(());
        }
        let moved = self.pods_of(nodes);
        if let Some(unplaced) = plan.unplaced.iter().find(|unplaced| moved.contains(&*unplaced.pod)) {
            let reason = Box::new(unplaced.reason.clone());
            return Err(Kept::Unschedulable { pod: (*unplaced.pod).clone(), reason });
        }
        let is_early = |node: &str| self.rising.contains(node);
        let early = plan.placements.iter().find(|placed| is_early(&placed.node) && moved.contains(&*placed.pod));
        match early {
            Some(placed) => Err(Kept::Uninitialized { pod: (*placed.pod).clone(), node: placed.node.clone() }),
            None => Ok(()),
        }
    }

    fn pods_of(&self, nodes: &[usize]) -> BTreeSet<&'s PodKey> {
        nodes.iter().flat_map(|node| self.nodes[*node].state.pods.iter().map(|pod| &*pod.key)).collect()
    }

    /// The move that a plan is.
    pub(super) fn command(&self, method: Method, nodes: &[usize], (plan, planned): (&Plan, Vec<NewNode>)) -> Command {
        // Of a move that another goes before, nobody asks where its pods go.
        let moved = if self.has_found_one() { BTreeSet::new() } else { self.pods_of(nodes) };
        let to_nodes = plan.placements.iter().filter(|placed| moved.contains(&*placed.pod));
        let mut moves: Vec<Move> = to_nodes
            .map(|placed| Move { pod: placed.pod.clone(), to: Destination::Node(placed.node.clone()) })
            .collect();
        for (index, new) in planned.iter().enumerate() {
            let pods = new.pods.iter().filter(|pod| moved.contains(&***pod));
            moves.extend(pods.map(|pod| Move { pod: pod.clone(), to: Destination::Replacement(index) }));
        }
        moves.sort_by(|a, b| a.pod.cmp(&b.pod));
        let going: Vec<&Node<'s>> = nodes.iter().map(|node| &self.nodes[*node]).collect();
        let spent = sum(planned.iter().map(|new| new.chosen.price));
        let saved = sum(going.iter().filter_map(|node| node.price)).value() - spent.value();
        Command {
            method,
            removed: going.iter().map(|node| node.removed()).collect(),
            fingerprint: self.fingerprint(&going, &planned),
            repair: None,
            replacements: planned.into_iter().map(|new| Replacement::Planned(Box::new(new))).collect(),
            terminate_first: None,
            moves,
            savings: saved,
            scores: Vec::new(),
        }
    }

    /// Whether the same move was tried, and its replacement never became ready.
    pub(super) fn has_failed(&self, command: &Command) -> bool {
        let failed = &self.snapshot.disruption.failed;
        command.removed.iter().any(|removed| failed.get(&removed.node) == Some(&command.fingerprint))
    }

    /// The same for the same nodes with the same pods and the same replacements, made from the same pool, class and template: once
    /// one of these was changed, a move that failed may succeed.
    fn fingerprint(&self, going: &[&Node<'_>], planned: &[NewNode]) -> u64 {
        let uids = |node: &Node<'_>| node.state.pods.iter().map(|pod| fixed_hash(&pod.key.uid)).collect::<Vec<u64>>();
        let nodes: Vec<(&str, Vec<u64>)> = going.iter().map(|node| (node.name(), uids(node))).collect();
        let chosen = planned.iter().map(|new| {
            let chosen = &new.chosen;
            let pool = self.snapshot.pools.iter().find(|pool| pool.name == new.pool);
            let made_of = (chosen.requirements.to_string(), format!("{:?}", chosen.place));
            (&new.pool, pool.map(|pool| &pool.revision), &chosen.instance_type, made_of)
        });
        fixed_hash(&(nodes, chosen.collect::<Vec<_>>()))
    }
}

/// Nodes that take no pods yet, by name.
pub(super) fn rising(nodes: &[std::sync::Arc<tenon_model::NodeState>]) -> BTreeSet<&str> {
    let rising = nodes.iter().filter(|node| node.is_managed && node.stage == NodeStage::Rising);
    rising.map(|node| node.name.as_str()).collect()
}
