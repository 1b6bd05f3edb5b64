//! What is switched on and off: feature gates, as a map or as the text of a flag.

use serde_json::Value;

use super::PlanOptions;

/// Feature gates with their standing defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct FeatureGates {
    /// Broken nodes are replaced.
    pub node_repair: bool,
    /// Capacity that was set aside is used first.
    pub reserved_capacity: bool,
    /// Spot nodes may be replaced by cheaper spot nodes.
    pub spot_to_spot_consolidation: bool,
    /// NodeOverlays change prices and capacities.
    pub node_overlay: bool,
    /// Pools may have a fixed number of nodes.
    pub static_capacity: bool,
    /// Room may be kept for pods to come.
    pub capacity_buffer: bool,
    /// A drifted node goes before its replacement comes.
    pub terminate_first_drift: bool,
    /// A broken node goes before its replacement comes.
    pub terminate_first_repair: bool,
    /// Pods are told what it costs to delete them.
    pub pod_deletion_cost_management: bool,
}

impl Default for FeatureGates {
    fn default() -> FeatureGates {
        FeatureGates {
            node_repair: false,
            reserved_capacity: true,
            spot_to_spot_consolidation: false,
            node_overlay: false,
            static_capacity: false,
            capacity_buffer: false,
            terminate_first_drift: false,
            terminate_first_repair: false,
            pod_deletion_cost_management: false,
        }
    }
}

impl FeatureGates {
    /// Gates that are on and change nothing, because what they switch on is not there yet.
    pub fn without_effect(&self) -> Vec<&'static str> {
        let waiting = [("CapacityBuffer", self.capacity_buffer)];
        waiting.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect()
    }

    fn gate(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "NodeRepair" => &mut self.node_repair,
            "ReservedCapacity" => &mut self.reserved_capacity,
            "SpotToSpotConsolidation" => &mut self.spot_to_spot_consolidation,
            "NodeOverlay" => &mut self.node_overlay,
            "StaticCapacity" => &mut self.static_capacity,
            "CapacityBuffer" => &mut self.capacity_buffer,
            "TerminateFirstDrift" => &mut self.terminate_first_drift,
            "TerminateFirstRepair" => &mut self.terminate_first_repair,
            "PodDeletionCostManagement" => &mut self.pod_deletion_cost_management,
            _ => return None,
        })
    }
}

/// Sets the gates a file names; the others stay.
pub(super) fn apply(options: &mut PlanOptions, value: &Value) -> Result<(), String> {
    match value {
        Value::Object(map) => map.iter().try_for_each(|(name, value)| {
            let flag = match value {
                Value::Bool(flag) => Some(*flag),
                Value::String(text) => truth(text),
                _ => None,
            };
            set(options, name, flag.ok_or_else(|| format!("{name}: {value} is neither true nor false"))?);
            Ok(())
        }),
        Value::String(text) => text.split(',').map(str::trim).filter(|part| !part.is_empty()).try_for_each(|part| {
            let (name, value) =
                part.split_once('=').ok_or_else(|| format!("`{part}` is not of the form NAME=true or NAME=false"))?;
            let flag = truth(value.trim()).ok_or_else(|| format!("{name}: `{value}` is neither true nor false"))?;
            set(options, name.trim(), flag);
            Ok(())
        }),
        _ => Err("must be a map or a string such as NodeRepair=true".to_owned()),
    }
}

fn set(options: &mut PlanOptions, name: &str, flag: bool) {
    match options.feature_gates.gate(name) {
        Some(gate) => *gate = flag,
        // As the controller does: gates come and go with versions.
        None => options.notes.push(format!("unknown feature gate {name} has no effect")),
    }
}

/// Truth as Go reads it from a text.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    #[test]
    fn gates_are_read_from_a_map_and_from_a_text() {
        for text in [
            "featureGates: {NodeRepair: true, ReservedCapacity: false}",
            "feature-gates: NodeRepair=true, ReservedCapacity=false,",
            "FEATURE_GATES: NodeRepair=T,ReservedCapacity=0",
        ] {
            let gates = read(text).unwrap().feature_gates;
            assert_eq!(gates, FeatureGates { node_repair: true, reserved_capacity: false, ..FeatureGates::default() });
        }
    }

    #[test]
    fn a_gate_that_is_on_for_nothing_is_named() {
        assert!(FeatureGates::default().without_effect().is_empty());
        let gates = read("featureGates: NodeOverlay=true,CapacityBuffer=true,NodeRepair=true").unwrap().feature_gates;
        assert_eq!(gates.without_effect(), ["CapacityBuffer"]);
        assert!(gates.node_overlay, "this one is there");
    }

    #[test]
    fn a_gate_nobody_knows_is_told_and_a_value_nobody_understands_refused() {
        let options = read("featureGates: {Fly: true}").unwrap();
        assert_eq!(options.feature_gates, FeatureGates::default());
        assert_eq!(options.notes, ["unknown feature gate Fly has no effect"]);
        for (text, words) in [
            ("featureGates: {NodeRepair: 3}", "NodeRepair: 3 is neither true nor false"),
            ("featureGates: NodeRepair", "`NodeRepair` is not of the form"),
            ("featureGates: NodeRepair=yes", "`yes` is neither"),
            ("featureGates: [NodeRepair]", "must be a map or a string"),
        ] {
            let said = read(text).unwrap_err().to_string();
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
