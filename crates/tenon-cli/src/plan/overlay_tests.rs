//! Do NodeOverlays in files change a plan, with the feature gate and not without?

use std::sync::Arc;

use tenon_api::plan_options;
use tenon_model::InstanceType;

use super::Input;
use super::collect::{Collected, Collector};
use super::load::read_text;
use super::report::Report;
use super::solve::solve;
use super::supply::{Supply, TypeSource};

const FILE: &str = r#"
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: p }
spec:
  template:
    spec:
      nodeClassRef: { group: g, kind: k, name: n }
      requirements: []
---
apiVersion: v1
kind: Pod
metadata: { name: a }
spec:
  containers: [{ name: c, image: i, resources: { requests: { cpu: 2 } } }]
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: { name: free }
spec:
  requirements: [{ key: node.kubernetes.io/instance-type, operator: In, values: [m1.8VCPU-64GB] }]
  priceAdjustment: "-100%"
  capacity: { example.com/fpga: 1 }
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: { name: dear }
spec:
  requirements: []
  price: "9"
"#;

fn planned(options: &str) -> Report {
    let mut collector = Collector::default();
    read_text(&Arc::from("f.yaml"), FILE, &mut collector).unwrap();
    let Collected { objects, workloads, .. } = collector.finish().unwrap();
    let supply: Supply =
        TypeSource::BuiltIn(InstanceType::built_in()).without_cluster(&mut Collector::default()).unwrap();
    let (options, loading) = (plan_options::read(options).unwrap(), std::time::Duration::ZERO);
    solve(&Input { objects, workloads, supply, options, disruption: None, loading })
}

#[test]
fn i6_i11_overlays_of_files_change_what_is_bought_and_one_that_conflicts_is_named() {
    let report = planned("featureGates: NodeOverlay=true");
    let [claim] = report.new_node_claims.as_slice() else { panic!("{report:?}") };
    assert_eq!((claim.offering.instance_type.as_str(), claim.offering.price), ("m1.8VCPU-64GB", 0.0));
    let [warning] = report.warnings.as_slice() else { panic!("{:?}", report.warnings) };
    assert!(warning.starts_with("NodeOverlay dear is not applied: conflict with NodeOverlay free"), "{warning}");
}

#[test]
fn overlays_of_files_are_ignored_without_the_feature_gate_and_that_is_said() {
    let report = planned("");
    assert_ne!(report.new_node_claims[0].offering.instance_type, "m1.8VCPU-64GB");
    let [warning] = report.warnings.as_slice() else { panic!("{:?}", report.warnings) };
    assert!(warning.starts_with("ignored 2 NodeOverlays: the feature gate NodeOverlay is off"), "{warning}");
}
