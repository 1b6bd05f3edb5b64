//! A whole entry of the file: a size, what it is like, and what is offered of it where and at which price.

use std::collections::{BTreeMap, BTreeSet};

use tenon_model::{CapacityType, Operator, Overhead, Price, PriceFormula, Requirement, Requirements, Resources};

use super::fields::{Fault, Fields};
use crate::names::{LABEL_ARCH, LABEL_CAPACITY_TYPE, LABEL_INSTANCE_TYPE, LABEL_OS, LABEL_ZONE};

/// How the label of a reservation ends.
const RESERVATION_ID: &str = "reservation-id";

/// A size of VM, and what is offered of it.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogEntry {
    /// Its name, which is a label value.
    pub name: String,
    /// What the VM has.
    pub capacity: Resources,
    /// What of it pods cannot have.
    pub overhead: Overhead,
    /// What its labels are like.
    pub requirements: Requirements,
    /// Where it can be had, and for what.
    pub offerings: Vec<OfferingEntry>,
    /// How many volumes of a CSI driver it takes; a driver that is not named is not limited.
    pub volume_attachment_limits: BTreeMap<String, u32>,
}

/// One way to get a size.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferingEntry {
    /// What the labels of a node are like that is got this way.
    pub requirements: Requirements,
    /// What it costs.
    pub price: f64,
    /// Whether it can be had at all now.
    pub available: bool,
    /// How many are left of a reservation.
    pub reservation_capacity: Option<u32>,
}

impl OfferingEntry {
    /// The reservation it draws on, if it does.
    pub fn reservation_id(&self) -> Option<&str> {
        let label = self.requirements.iter().find(|(label, _)| label.ends_with(RESERVATION_ID));
        label.and_then(|(_, requirement)| requirement.values().first()).map(String::as_str)
    }
}

impl CatalogEntry {
    pub(super) fn read(fields: &Fields, formula: &PriceFormula) -> Result<CatalogEntry, Fault> {
        let name = fields.name()?;
        if fields.get("capacity").is_none() {
            return Err(fields.fault("capacity", "this field is required"));
        }
        let capacity = fields.resources("capacity")?;
        let offerings = match fields.list("offerings")? {
            Some(list) => list.iter().map(offering).collect::<Result<_, _>>()?,
            None => {
                let capacity_type = fields.capacity_type()?;
                let price = fields.price()?.unwrap_or_else(|| formula.price(&capacity, capacity_type));
                vec![only(capacity_type, price)]
            }
        };
        let written = match fields.list("requirements")? {
            Some(list) => list.iter().map(Fields::requirement).collect::<Result<_, _>>()?,
            None => from_offerings(&offerings),
        };
        Ok(CatalogEntry {
            requirements: with_name(written, &name),
            name,
            capacity,
            overhead: fields.overhead()?,
            offerings,
            volume_attachment_limits: fields.counts("volumeAttachmentLimits")?,
        })
    }

    /// Every label this entry speaks of; each may be left open by a pool.
    pub fn labels(&self) -> BTreeSet<&str> {
        let offered = self.offerings.iter().flat_map(|offering| offering.requirements.iter());
        self.requirements.iter().chain(offered).map(|(label, _)| label).collect()
    }
}

fn with_name(mut requirements: Requirements, name: &str) -> Requirements {
    if requirements.get(LABEL_INSTANCE_TYPE).is_none() {
        requirements.add(LABEL_INSTANCE_TYPE, &Requirement::is(name));
    }
    requirements
}

fn offering(fields: &Fields) -> Result<OfferingEntry, Fault> {
    let requirements = fields.list("requirements")?.unwrap_or_default();
    let price = fields.price()?.ok_or_else(|| fields.fault("price", "this field is required"))?;
    Ok(OfferingEntry {
        requirements: requirements.iter().map(Fields::requirement).collect::<Result<_, _>>()?,
        price: price.value(),
        available: fields.flag("available")?.unwrap_or(true),
        reservation_capacity: fields.count("reservationCapacity")?,
    })
}

/// What is offered of a size that says nothing of offerings.
fn only(capacity_type: CapacityType, price: Price) -> OfferingEntry {
    let label = (LABEL_CAPACITY_TYPE.to_owned(), Requirement::is(capacity_type.as_str()));
    OfferingEntry {
        requirements: [label].into_iter().collect(),
        price: price.value(),
        available: true,
        reservation_capacity: None,
    }
}

/// What a size is like of which nothing is said: the usual machine, wherever and however it can be had.
fn from_offerings(offerings: &[OfferingEntry]) -> Requirements {
    let mut requirements = Requirements::default();
    requirements.add(LABEL_ARCH, &Requirement::is("amd64"));
    requirements.add(LABEL_OS, &Requirement::is("linux"));
    for label in [LABEL_ZONE, LABEL_CAPACITY_TYPE] {
        // Where no offering speaks of zones there are none, and the label stays open.
        if offerings.iter().any(|offering| offering.requirements.get(label).is_some()) {
            let available = offerings.iter().filter(|offering| offering.available);
            let offered = available.filter_map(|offering| offering.requirements.get(label));
            let values: BTreeSet<String> = offered.flat_map(|requirement| requirement.values().clone()).collect();
            if let Some(any) = Requirement::new(Operator::In, values) {
                requirements.add(label, &any);
            }
        }
    }
    requirements
}

#[cfg(test)]
mod tests {
    use tenon_model::Quantity;

    use super::super::read_catalog;
    use super::*;

    fn one(entry: &str) -> CatalogEntry {
        read_catalog(&format!("[{entry}]"), &PriceFormula::default()).unwrap().remove(0)
    }

    fn fault(entry: &str) -> String {
        read_catalog(&format!("[{entry}]"), &PriceFormula::default()).unwrap_err().to_string()
    }

    fn values(requirements: &Requirements, label: &str) -> Vec<String> {
        requirements.get(label).unwrap().values().iter().cloned().collect()
    }

    #[test]
    fn an_entry_is_read_as_it_is_written() {
        let m4 = one(r#"{"name":"m4","capacity":{"cpu":"4","memory":"16Gi","pods":"30","example.com/fpga":2},
            "overhead":{"KubeReserved":{"cpu":"100m"}},"VolumeAttachmentLimits":{"csi.example":7},
            "offerings":[{"requirements":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["a"]},
              {"Key":"karpenter.sh/capacity-type","operator":"In","values":["reserved"]},
              {"key":"x/reservation-id","operator":"In","values":["r1"]}],"Price":0.05,"reservationCapacity":3},
             {"requirements":[{"key":"failure-domain.beta.kubernetes.io/zone","operator":"In","values":["b"]}],
              "price":1,"available":false}]}"#);
        assert_eq!(m4.capacity.get("example.com/fpga"), Quantity::whole(2));
        assert_eq!(m4.overhead.kube_reserved.get("cpu"), Quantity::milli(100));
        assert_eq!(m4.volume_attachment_limits["csi.example"], 7);
        let [first, second] = m4.offerings.as_slice() else { panic!("{:?}", m4.offerings) };
        assert_eq!((first.price, first.available, first.reservation_capacity), (0.05, true, Some(3)));
        assert_eq!((first.reservation_id(), second.reservation_id()), (Some("r1"), None));
        assert_eq!((second.available, values(&second.requirements, LABEL_ZONE)), (false, vec!["b".to_owned()]));
        // Of what it is like nothing is said: then it is what can be had of it.
        assert_eq!(values(&m4.requirements, LABEL_ZONE), ["a"]);
        assert_eq!(values(&m4.requirements, LABEL_CAPACITY_TYPE), ["reserved"]);
        assert_eq!(values(&m4.requirements, LABEL_ARCH), ["amd64"]);
        assert_eq!(values(&m4.requirements, LABEL_INSTANCE_TYPE), ["m4"]);
        assert!(m4.labels().contains("x/reservation-id"));
    }

    #[test]
    fn requirements_are_used_as_written_with_the_name_added() {
        let listed = one(r#"{"name":"a","capacity":{},"requirements":[{"key":"team","operator":"Exists"}]}"#);
        assert_eq!(
            listed.requirements.iter().map(|(label, _)| label).collect::<Vec<_>>(),
            [LABEL_INSTANCE_TYPE, "team"]
        );
        let renamed = one(
            r#"{"name":"a","capacity":{},"requirements":[{"key":"node.kubernetes.io/instance-type","operator":"In","values":["b"]}]}"#,
        );
        assert_eq!(values(&renamed.requirements, LABEL_INSTANCE_TYPE), ["b"]);
        assert_eq!(one(r#"{"name":"a","capacity":{},"requirements":[]}"#).requirements.iter().count(), 1);
    }

    #[test]
    fn what_nobody_priced_costs_by_its_size_and_half_as_spot() {
        let plain = one(r#"{"name":"a","capacity":{"cpu":2,"memory":"4G"}}"#);
        assert!((plain.offerings[0].price - 0.054).abs() < 1e-12);
        assert_eq!(values(&plain.offerings[0].requirements, LABEL_CAPACITY_TYPE), ["on-demand"]);
        assert_eq!(plain.requirements.get(LABEL_ZONE), None);
        // Nothing is added to what the file says.
        assert_eq!(plain.capacity.get("pods"), Quantity::ZERO);
        let spot = one(r#"{"name":"a","capacity":{"cpu":2,"memory":"4G"},"capacityType":"spot"}"#);
        assert!((spot.offerings[0].price - 0.027).abs() < 1e-12);
        let priced = one(r#"{"name":"a","capacity":{"cpu":2,"memory":"4G"},"capacityType":"spot","price":3}"#);
        assert!((priced.offerings[0].price - 3.0).abs() < 1e-12);
        let formula = PriceFormula { per_cpu: 1.0, ..PriceFormula::default() };
        let dear = read_catalog(r#"[{"name":"a","capacity":{"cpu":2,"memory":"4G"}}]"#, &formula).unwrap();
        assert!((dear[0].offerings[0].price - 2.004).abs() < 1e-12);
        assert!(one(r#"{"name":"a","capacity":{"cpu":1},"offerings":[]}"#).offerings.is_empty());
    }

    #[test]
    fn a_fault_names_the_field() {
        for (entry, words) in [
            (r#"{"name":"a"}"#, "instance type a: capacity: this field is required"),
            (r#"{"name":"a","capacity":[]}"#, "capacity: must be a map"),
            (r#"{"name":"a","capacity":{"cpu":true}}"#, "capacity.cpu: must be a quantity"),
            (r#"{"name":"a","capacity":{},"overhead":{"SystemReserved":{"cpu":"x"}}}"#, "overhead.systemReserved.cpu"),
            (r#"{"name":"a","capacity":{},"overhead":3}"#, "overhead: must be an object"),
            (r#"{"name":"a","capacity":{},"offerings":[{}]}"#, "offerings[0].price: this field is required"),
            (
                r#"{"name":"a","capacity":{},"offerings":[{"price":-1}]}"#,
                "offerings[0].price: must be a non-negative number",
            ),
            (r#"{"name":"a","capacity":{},"offerings":[{"price":1,"available":"no"}]}"#, "offerings[0].available"),
            (r#"{"name":"a","capacity":{},"offerings":[{"price":1,"reservationCapacity":-1}]}"#, "reservationCapacity"),
            (
                r#"{"name":"a","capacity":{},"requirements":[{"key":"x"}]}"#,
                "requirements[0].operator: this field is required",
            ),
            (r#"{"name":"a","capacity":{},"requirements":[{"key":"x","operator":"Is"}]}"#, "`Is` is not one of In"),
            (r#"{"name":"a","capacity":{},"requirements":[{"key":"x","operator":"In","values":[1]}]}"#, "[0].values"),
            (
                r#"{"name":"a","capacity":{},"requirements":[{"key":"x","operator":"Gt","values":["z"]}]}"#,
                "operator Gt",
            ),
            (r#"{"name":"a","capacity":{},"volumeAttachmentLimits":{"d":1.5}}"#, "volumeAttachmentLimits.d"),
        ] {
            let said = fault(entry);
            assert!(said.contains(words) && said.starts_with("line 1: "), "{entry}: {said}");
        }
    }
}
