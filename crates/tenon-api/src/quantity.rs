//! How amounts of resources look in a schema and in objects: a whole number, or a text such as `500m` or `2Gi`.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use tenon_model::{Quantity, Resources};

/// The pattern of a quantity in every Kubernetes schema.
const PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// Resource names with their amounts, as people wrote them.
pub type ResourceMap = BTreeMap<String, IntOrString>;

/// Resource names with their amounts in pods, nodes and other objects of Kubernetes.
pub type KubeResources = BTreeMap<String, KubeQuantity>;

/// An amount as it is written in one of our objects: a number, or a quantity. `None` if it is neither.
pub fn quantity_of(amount: &IntOrString) -> Option<Quantity> {
    match amount {
        IntOrString::Int(number) => Some(Quantity::whole(i64::from(*number))),
        IntOrString::String(text) => text.parse().ok(),
    }
}

/// The resources of one of our objects. What is no amount counts as nothing: the API server would not have taken it.
pub fn resources_of(map: &ResourceMap) -> Resources {
    map.iter().filter_map(|(name, amount)| Some((name.clone(), quantity_of(amount)?))).collect()
}

/// The resources of an object of Kubernetes, read as [`resources_of`] does.
pub(crate) fn kube_resources(map: Option<&KubeResources>) -> Resources {
    let read = |(name, amount): (&String, &KubeQuantity)| Some((name.clone(), amount.0.parse::<Quantity>().ok()?));
    map.into_iter().flatten().filter_map(read).collect()
}

/// The schema of one amount.
pub(crate) fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "pattern": PATTERN, "x-kubernetes-int-or-string": true })
}

/// The schema of a [`ResourceMap`].
pub(crate) fn resources(generator: &mut SchemaGenerator) -> Schema {
    let amount = quantity(generator);
    json_schema!({ "type": "object", "additionalProperties": amount })
}

/// The schema of the size of a boot disk: whole giga- or terabytes.
pub(crate) fn disk_size(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "allOf": [{ "pattern": PATTERN }, { "pattern": r"^\d+(T|G|Ti|Gi)$" }],
        "x-kubernetes-int-or-string": true,
    })
}

/// Reads one amount. Servers keep a number a number, and it may be larger than `IntOrString` has room for.
pub(crate) fn read_amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<IntOrString>, D::Error> {
    Ok(Option::<Amount>::deserialize(deserializer)?.map(|amount| amount.0))
}

/// Reads a map of amounts, each as [`read_amount`] does.
pub(crate) fn read_amounts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ResourceMap>, D::Error> {
    let amounts = Option::<BTreeMap<String, Amount>>::deserialize(deserializer)?;
    Ok(amounts.map(|amounts| amounts.into_iter().map(|(name, amount)| (name, amount.0)).collect()))
}

struct Amount(IntOrString);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Amount, D::Error> {
        deserializer.deserialize_any(AmountVisitor)
    }
}

struct AmountVisitor;

impl Visitor<'_> for AmountVisitor {
    type Value = Amount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a quantity")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Amount, E> {
        let large = || IntOrString::String(number.to_string());
        Ok(Amount(i32::try_from(number).map_or_else(|_| large(), IntOrString::Int)))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Amount, E> {
        let large = || IntOrString::String(number.to_string());
        Ok(Amount(i32::try_from(number).map_or_else(|_| large(), IntOrString::Int)))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Amount, E> {
        Ok(Amount(IntOrString::String(number.to_string())))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Amount, E> {
        Ok(Amount(IntOrString::String(text.to_owned())))
    }
}
