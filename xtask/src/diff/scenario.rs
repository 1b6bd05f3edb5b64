//! One scenario: what a seed stands for, as files.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::dice::Dice;
use super::nodes::{self, Ground};
use super::vocabulary::Vocabulary;
use super::{catalogue, daemons, pods, pools, second, topology};

/// The names of its files.
pub(super) const OBJECTS: &str = "objects.json";
pub(super) const TYPES: &str = "instance-types.json";
pub(super) const OPTIONS: &str = "options.json";

/// The input of one plan.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) objects: Value,
    pub(crate) types: Value,
    pub(crate) options: Option<Value>,
}

impl Scenario {
    /// What the seed stands for.
    pub(super) fn generate(seed: u64) -> Scenario {
        if seed >= second::FIRST_SEED {
            return second::generate(seed);
        }
        let mut dice = Dice::new(seed);
        let types = catalogue::generate(&mut dice);
        let names: Vec<String> = types.iter().map(|size| size.name.clone()).collect();
        let words = Vocabulary::new(&mut dice, &names);
        let pools = pools::generate(&mut dice, &words);
        let daemons = daemons::generate(&mut dice, &words);
        let ground = Ground { types: &types, words: &words, pools: &pools, daemons: &daemons };
        let cluster = nodes::generate(&mut dice, &ground);
        let mut items: Vec<Value> =
            pools.iter().zip(&cluster.staying).map(|(pool, staying)| pool.to_json(*staying)).collect();
        items.extend(daemons.iter().map(daemons::Daemon::to_json));
        items.extend(cluster.objects);
        items.extend(pods::pending(&mut dice, &words, &pools));
        if seed >= topology::FIRST_SEED {
            topology::add(seed, &mut items);
        }
        Scenario {
            objects: json!({"apiVersion": "v1", "kind": "List", "items": items}),
            types: json!(types.iter().map(catalogue::InstanceType::to_json).collect::<Vec<_>>()),
            options: options(&mut dice),
        }
    }

    /// Reads it back from its folder.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Scenario> {
        let options = folder.join(OPTIONS);
        Ok(Scenario {
            objects: read(&folder.join(OBJECTS))?,
            types: read(&folder.join(TYPES))?,
            options: options.exists().then(|| read(&options)).transpose()?,
        })
    }

    /// Writes its files into a folder.
    pub(crate) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let files = [(OBJECTS, Some(&self.objects)), (TYPES, Some(&self.types)), (OPTIONS, self.options.as_ref())];
        for (name, value) in files {
            let path = folder.join(name);
            if let Some(value) = value {
                fs::write(&path, sorted(value).to_string())
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        Ok(())
    }

    /// A hash of its files: a recording is only as good as the input it was made from.
    pub(super) fn fingerprint(&self) -> String {
        let whole = json!([self.objects, self.types, self.options]);
        let hash = Sha256::digest(sorted(&whole).to_string());
        hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

fn options(dice: &mut Dice) -> Option<Value> {
    let mut settings = Map::new();
    if dice.chance(20) {
        settings.insert("preferencePolicy".to_owned(), json!("Ignore"));
    }
    if dice.chance(30) {
        settings.insert("minValuesPolicy".to_owned(), json!("BestEffort"));
    }
    if dice.chance(4) {
        settings.insert("featureGates".to_owned(), json!({"ReservedCapacity": false}));
    }
    (!settings.is_empty()).then_some(Value::Object(settings))
}

fn read(path: &Path) -> anyhow::Result<Value> {
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("cannot read {}", path.display()))
}

/// The same value with sorted keys, whichever map another crate's features make serde_json use.
pub(super) fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Object(fields) => {
            let mut pairs: Vec<_> = fields.iter().collect();
            pairs.sort_by_key(|(key, _)| *key);
            Value::Object(pairs.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_is_the_same_scenario_also_through_files() {
        let scenario = Scenario::generate(11);
        assert_eq!(scenario.fingerprint(), Scenario::generate(11).fingerprint());
        assert_ne!(scenario.fingerprint(), Scenario::generate(12).fingerprint());
        let folder = tempfile::tempdir().unwrap();
        scenario.write(folder.path()).unwrap();
        assert_eq!(Scenario::read(folder.path()).unwrap().fingerprint(), scenario.fingerprint());
    }

    #[test]
    fn the_recorded_scenarios_mix_every_kind_of_constraint() {
        let all: String = super::super::recorded::SEEDS
            .map(Scenario::generate)
            .map(|scenario| json!([scenario.objects, scenario.types, scenario.options]).to_string())
            .collect();
        let operators = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"];
        let operators = operators.map(|operator| format!("\"operator\":\"{operator}\""));
        let words = [
            "minValues",
            "weight",
            "limits",
            "taints",
            "startupTaints",
            "PreferNoSchedule",
            "NoExecute",
            "tolerations",
            "nodeSelector",
            "requiredDuringScheduling",
            "preferredDuringScheduling",
            "hostPort",
            "hostIP",
            "initContainers",
            "restartPolicy",
            "example.com/gpu",
            "overhead",
            "reservationCapacity",
            "\"available\":false",
            "DaemonSet",
            "NodeClaim",
            "deletionTimestamp",
            "karpenter.sh/initialized",
            "preferencePolicy",
            "minValuesPolicy",
            "karpenter.sh/unheard-of",
            "nominatedNodeName",
            "beta.kubernetes.io/arch",
            "beta.kubernetes.io/instance-type",
            "failure-domain.beta.kubernetes.io/zone",
            "InstanceTerminating",
            "karpenter.sh/unregistered",
            "kube-system/gone",
            "\"preference\":{\"matchFields\"",
            "\"nodes\":",
        ];
        for word in words.into_iter().chain(operators.iter().map(String::as_str)) {
            assert!(all.contains(word), "no recorded scenario has {word}");
        }
    }
}
