//! Quantities as the real API server reads them.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::CSIStorageCapacity;
use kube::api::{Api, PostParams};
use serde_json::json;
use tenon_model::Quantity;

use testbed::shared_testbed;

const TEXTS: &[&str] = &[
    "0",
    "1",
    "100",
    "1k",
    "1M",
    "1G",
    "1T",
    "1P",
    "1E",
    "1Ki",
    "1Mi",
    "1Gi",
    "1Ti",
    "1Pi",
    "1Ei",
    "0.5",
    ".5",
    "5.",
    "1.5Gi",
    "0.1Ki",
    "1e3",
    "1E3",
    "1e0",
    "12e6",
    "1.5e3",
    "1e-3",
    "100m",
    "1500m",
    "1u",
    "1n",
    "0.0000000001",
    "1.1n",
    "0.00000000001Ki",
    "+1",
    "007",
    "9223372036854775807",
    "9223372036854775808",
    "1e100",
    "10E",
    "8Ei",
    "99999999999999999999999999",
    "1.000000001Gi",
    "3.14159265358979Mi",
    "",
    "-",
    "Gi",
    ".",
    "1.2.3",
    "1 Gi",
    "1gi",
    "1K",
    "1e",
    "1e+",
    "1e1.5",
    "0x10",
    "1Gi ",
    " 1",
    "NaN",
    "1ee3",
    "--1",
    "1,5",
    "1mi",
    "1Mib",
    // What is kept as it is written, and what is not.
    "00.00e9",
    "2000m",
    "1000",
    "1024",
    "1023Ki",
    "1024Ki",
    "1000Ki",
    "0.5Ki",
    "0.0001Ki",
    "1e-100",
    "1500e-3",
    "1.500",
    "1e03",
    "1e+3",
    "1.Gi",
    "+1Ki",
    "0Gi",
    "123456789012345678901234567890123456789012",
    "1e4294967296",
    "100000000000000000",
    "1000000000000000000",
    "12345678901Ki",
    "123456789012Ki",
    "7Ei",
    "7.99999999999999999999Ei",
    "1e9223372036854775808",
    "1E1E1",
    "1µ",
    "inf",
    "Ei",
    "Pi",
    "Ti",
    "0Ei",
    "e-10",
    "e-9",
];

/// Amounts the server has no suffix for: it writes them back without their zeros, and so as others than it was sent.
const BEYOND: &[&str] = &["1000E", "10000000000000000000000", "999999999999999999999999.9999999999"];

fn pod(memory: &str) -> serde_json::Result<Pod> {
    serde_json::from_value(json!({
        "metadata": { "name": "quantity" },
        "spec": { "containers": [{ "name": "c", "image": "registry.example/c:1", "resources": { "requests": { "memory": memory } } }] },
    }))
}

/// What the server makes of a memory request; `None` if it cannot read it.
async fn read_by_server(pods: &Api<Pod>, text: &str) -> anyhow::Result<Option<String>> {
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    match pods.create(&dry_run, &pod(text)?).await {
        Ok(pod) => {
            let containers = pod.spec.map(|spec| spec.containers).unwrap_or_default();
            let requests = containers.into_iter().next().and_then(|container| container.resources?.requests);
            Ok(requests.and_then(|requests| requests.get("memory").map(|quantity| quantity.0.clone())))
        }
        // 422 is a quantity it read and does not like; 400 is one it could not read.
        Err(kube::Error::Api(status)) if status.code == 400 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[tokio::test]
async fn every_quantity_means_what_the_api_server_takes_it_for() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let pods: Api<Pod> = Api::namespaced(testbed.admin().await?, "default");
    let mut differences = Vec::new();
    for text in TEXTS {
        // JSON takes the blanks away before anything is read.
        let ours = text.trim().parse::<Quantity>().ok();
        let theirs = read_by_server(&pods, text).await?;
        let normal = theirs.as_ref().map(|text| text.parse::<Quantity>());
        match (ours, normal) {
            (None, None) => {}
            // A pod's requests are rounded up to thousandths on the way in.
            (Some(ours), Some(Ok(theirs))) if ours.milli_value() == theirs.milli_value() => {}
            (ours, _) => differences.push(format!("`{text}`: {ours:?} here, {theirs:?} there")),
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
    Ok(())
}

/// How the server writes an amount back that it does not round; `None` if it cannot read it.
async fn stored_by_server(capacities: &Api<CSIStorageCapacity>, text: &str) -> anyhow::Result<Option<String>> {
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let capacity = serde_json::from_value(
        json!({ "metadata": { "name": "quantity" }, "storageClassName": "none", "capacity": text }),
    )?;
    match capacities.create(&dry_run, &capacity).await {
        Ok(made) => Ok(made.capacity.map(|amount| amount.0)),
        Err(kube::Error::Api(status)) if status.code == 400 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[tokio::test]
async fn every_quantity_is_written_back_as_the_api_server_writes_it() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let capacities: Api<CSIStorageCapacity> = Api::namespaced(testbed.admin().await?, "default");
    let mut differences = Vec::new();
    for text in TEXTS.iter().chain(BEYOND) {
        let ours = Quantity::as_stored(text).ok();
        let theirs = stored_by_server(&capacities, text).await?;
        if ours != theirs {
            differences.push(format!("`{text}`: {ours:?} here, {theirs:?} there"));
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
    Ok(())
}
