//! How does a definition become a kind that is served?

use http::Request;
use kube::client::Body;
use serde_json::{Value, json};
use testbed::eventually;

use crate::ground::{Ground, wide};
use crate::reply::{condition, generation, names, text, uid};
use crate::things::{pool, with};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// How kubectl asks for rows.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// A group of the behaviour's own.
fn group(ground: &Ground) -> String {
    format!("{}.example", ground.name)
}

/// A definition of namespaced things.
fn definition(ground: &Ground) -> Value {
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "metadata": { "name": format!("things.{}", group(ground)) },
        "spec": {
            "group": group(ground), "scope": "Namespaced", "names": { "plural": "things", "kind": "Thing" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": any } }],
        },
    })
}

fn thing(ground: &Ground, name: &str) -> Value {
    json!({ "apiVersion": format!("{}/v1", group(ground)), "kind": "Thing", "metadata": { "name": name } })
}

/// Defines things and says where they are.
async fn things(ground: &Ground) -> anyhow::Result<(String, String)> {
    ground.made(DEFINITIONS, definition(ground)).await?;
    let things = ground.here(&format!("{}/things", group(ground)));
    ground.served(&things).await?;
    Ok((format!("{DEFINITIONS}/things.{}", group(ground)), things))
}

pub(crate) async fn a_definition_is_established(ground: &Ground) -> anyhow::Result<()> {
    ground.made(DEFINITIONS, definition(ground)).await?;
    let path = format!("{DEFINITIONS}/things.{}", group(ground));
    let found = eventually("it is established", async || {
        let found = ground.get(&path).await?.expect(200)?;
        let is_so = condition(&found, "Established").is_some_and(|told| text(told, "/status") == "True");
        Ok(is_so.then_some(found))
    })
    .await?;
    let accepted = condition(&found, "NamesAccepted").cloned().unwrap_or_default();
    assert_eq!((text(&accepted, "/status"), text(&accepted, "/reason")), ("True", "NoConflicts"));
    let names = json!({ "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList" });
    assert_eq!(found["status"]["acceptedNames"], names);
    assert_eq!(found["status"]["storedVersions"], json!(["v1"]));
    Ok(())
}

pub(crate) async fn a_defined_kind_is_served_and_empty(ground: &Ground) -> anyhow::Result<()> {
    let (_, things) = things(ground).await?;
    let list = ground.get(&things).await?.expect(200)?;
    assert_eq!((text(&list, "/kind"), &list["items"]), ("ThingList", &json!([])));
    assert_eq!(text(&list, "/apiVersion"), format!("{}/v1", group(ground)));
    ground.made(&things, thing(ground, "a")).await?;
    assert_eq!(names(&ground.get(&things).await?.expect(200)?), ["a"]);
    Ok(())
}

pub(crate) async fn a_kind_nobody_defined_is_not_found(ground: &Ground) -> anyhow::Result<()> {
    for path in [ground.here(&format!("{}/things", group(ground))), format!("/apis/{}/v1", group(ground))] {
        let reply = ground.get(&path).await?;
        assert_eq!((reply.code, reply.body), (404, json!("404 page not found\n")), "{path}");
    }
    ground.define().await?;
    let reply = ground.get(&wide("karpenter.sh/nothings")).await?;
    assert_eq!((reply.code, reply.body), (404, json!("404 page not found\n")));
    Ok(())
}

pub(crate) async fn a_kind_goes_with_its_definition(ground: &Ground) -> anyhow::Result<()> {
    let (definition, things) = things(ground).await?;
    ground.made(&things, thing(ground, "a")).await?;
    ground.delete(&definition, json!(null)).await?.expect(200)?;
    ground.gone(&definition).await?;
    ground.gone(&things).await
}

pub(crate) async fn a_definition_is_named_for_what_it_defines(ground: &Ground) -> anyhow::Result<()> {
    let body = with(definition(ground), json!({ "metadata": { "name": format!("others.{}", group(ground)) } }));
    let told = ground.post(DEFINITIONS, body).await?.refused(422, "Invalid")?;
    assert_eq!(text(&told, "/details/causes/0/field"), "metadata.name");
    Ok(())
}

pub(crate) async fn a_custom_object_must_say_what_it_is(ground: &Ground) -> anyhow::Result<()> {
    let (_, things) = things(ground).await?;
    ground.post(&things, json!({ "metadata": { "name": "a" } })).await?.refused(400, "BadRequest")?;
    let other = with(thing(ground, "a"), json!({ "apiVersion": format!("{}/v2", group(ground)) }));
    ground.post(&things, other).await?.refused(400, "BadRequest")?;
    Ok(())
}

pub(crate) async fn a_kind_without_a_status_part_keeps_status_with_the_rest(ground: &Ground) -> anyhow::Result<()> {
    let (_, things) = things(ground).await?;
    let body = with(thing(ground, "a"), json!({ "status": { "n": 1 } }));
    let made = ground.made(&things, body).await?;
    assert_eq!(made["status"], json!({ "n": 1 }));
    let patched = ground.merge(&format!("{things}/a"), json!({ "status": { "n": 2 } })).await?.expect(200)?;
    assert_eq!(patched["status"], json!({ "n": 2 }));
    assert_eq!((generation(&made), generation(&patched)), (1, 2), "it is a part like any other");
    let reply = ground.get(&format!("{things}/a/status")).await?;
    assert_eq!(reply.code, 404, "{reply:?}");
    Ok(())
}

pub(crate) async fn a_custom_object_is_owned_like_any_other(ground: &Ground) -> anyhow::Result<()> {
    let (_, things) = things(ground).await?;
    let made = ground.made(&things, thing(ground, "a")).await?;
    let owner = json!({
        "apiVersion": format!("{}/v1", group(ground)), "kind": "Thing", "name": "a", "uid": uid(&made),
    });
    let body = json!({ "metadata": { "name": "child", "ownerReferences": [owner] } });
    ground.made(&ground.here("secrets"), body).await?;
    ground.delete(&format!("{things}/a"), json!({ "propagationPolicy": "Background" })).await?.expect(200)?;
    ground.gone(&format!("{}/child", ground.here("secrets"))).await
}

pub(crate) async fn a_pool_is_shown_as_a_table(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = ground.pool().await?;
    ground.merge(&path, json!({ "spec": { "weight": 7 } })).await?.expect(200)?;
    let ready = json!([{ "type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    let status = json!({ "status": { "nodes": 3, "conditions": ready } });
    ground.merge(&format!("{path}/status"), status).await?.expect(200)?;
    let request = Request::get(&path).header("accept", TABLE).body(Body::empty())?;
    let table = ground.raw(request).await?.expect(200)?;
    assert_eq!((text(&table, "/kind"), text(&table, "/apiVersion")), ("Table", "meta.k8s.io/v1"));
    let columns = table["columnDefinitions"].as_array().into_iter().flatten();
    let columns: Vec<_> = columns.map(|c| (text(c, "/name"), text(c, "/type"), c["priority"].clone())).collect();
    let expected = [
        ("Name", "string", 0),
        ("NodeClass", "string", 0),
        ("Nodes", "string", 0),
        ("Ready", "string", 0),
        ("Age", "date", 0),
        ("Weight", "integer", 1),
        ("CPU", "string", 1),
        ("Memory", "string", 1),
    ];
    assert_eq!(columns, expected.map(|(name, kind, priority)| (name, kind, json!(priority))));
    let row = &table["rows"][0];
    let cells = row["cells"].as_array().cloned().unwrap_or_default();
    let name = ground.name.as_str();
    assert_eq!(cells[..4], [json!(name), json!("default"), json!("3"), json!("True")], "{cells:?}");
    assert_eq!(cells[5..], [json!(7), json!(null), json!(null)], "{cells:?}");
    assert_eq!((text(row, "/object/kind"), uid(&row["object"])), ("PartialObjectMetadata", uid(&made)));
    Ok(())
}

pub(crate) async fn a_pool_made_twice_already_exists(ground: &Ground) -> anyhow::Result<()> {
    ground.pool().await?;
    let told = ground.post(&wide("karpenter.sh/nodepools"), pool(&ground.name)).await?.refused(409, "AlreadyExists")?;
    assert_eq!(told["details"], json!({ "name": ground.name, "group": "karpenter.sh", "kind": "nodepools" }));
    Ok(())
}

pub(crate) async fn a_definition_that_changes_is_served_as_it_is_then(ground: &Ground) -> anyhow::Result<()> {
    let (definition, things) = things(ground).await?;
    ground.made(&things, with(thing(ground, "a"), json!({ "spec": { "n": 7 } }))).await?;
    let column = json!([{ "name": "N", "type": "integer", "jsonPath": ".spec.n" }]);
    let operations = json!([{ "op": "add", "path": "/spec/versions/0/additionalPrinterColumns", "value": column }]);
    ground.edit(&definition, operations).await?.expect(200)?;
    eventually("the column is shown", async || {
        let request = Request::get(&things).header("accept", TABLE).body(Body::empty())?;
        // Meanwhile the server may say 429: it opens the store of the kind anew.
        let table = ground.raw(request).await?.body;
        Ok((table["rows"][0]["cells"] == json!(["a", 7])).then_some(()))
    })
    .await
}

/// Names of the columns everybody sees, and their cells without the last, which is an age.
async fn shown(ground: &Ground, path: &str) -> anyhow::Result<(Vec<String>, Vec<Value>)> {
    let request = Request::get(path).header("accept", TABLE).body(Body::empty())?;
    let table = ground.raw(request).await?.expect(200)?;
    let columns = table["columnDefinitions"].as_array().cloned().unwrap_or_default();
    let cells = table["rows"][0]["cells"].as_array().cloned().unwrap_or_default();
    let plain = columns.iter().zip(cells).filter(|(column, _)| column["priority"] == 0);
    let plain: Vec<(String, Value)> = plain.map(|(column, cell)| (text(column, "/name").to_owned(), cell)).collect();
    let cells = plain.iter().filter(|(name, _)| name != "Age").map(|(_, cell)| cell.clone()).collect();
    Ok((plain.into_iter().map(|(name, _)| name).collect(), cells))
}

pub(crate) async fn a_pod_is_shown_as_a_table(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    let (columns, cells) = shown(ground, &format!("{}/a", ground.here("pods"))).await?;
    assert_eq!(columns, ["Name", "Ready", "Status", "Restarts", "Age"]);
    assert_eq!(cells, [json!("a"), json!("0/1"), json!("Running"), json!("0")]);
    ground.delete(&format!("{}/a", ground.here("pods")), json!(null)).await?.expect(200)?;
    let (_, cells) = shown(ground, &format!("{}/a", ground.here("pods"))).await?;
    assert_eq!(cells[2], "Terminating");
    Ok(())
}

pub(crate) async fn a_node_is_shown_as_a_table(ground: &Ground) -> anyhow::Result<()> {
    let more = json!({ "spec": { "unschedulable": true }, "status": { "nodeInfo": {
        "kubeletVersion": "v1.36.0", "architecture": "amd64", "operatingSystem": "linux", "machineID": "", "bootID": "",
        "systemUUID": "", "kernelVersion": "", "osImage": "", "containerRuntimeVersion": "", "kubeProxyVersion": "",
    } } });
    ground.made(&wide("nodes"), with(crate::things::node(&ground.name), more)).await?;
    let (columns, cells) = shown(ground, &format!("{}/{}", wide("nodes"), ground.name)).await?;
    assert_eq!(columns, ["Name", "Status", "Roles", "Age", "Version"]);
    let expected = [json!(ground.name), json!("Ready,SchedulingDisabled"), json!("<none>"), json!("v1.36.0")];
    assert_eq!(cells, expected);
    Ok(())
}

pub(crate) async fn a_deployment_is_shown_as_a_table(ground: &Ground) -> anyhow::Result<()> {
    ground.made(&ground.here("apps/deployments"), crate::things::deployment("a")).await?;
    let (columns, cells) = shown(ground, &format!("{}/a", ground.here("apps/deployments"))).await?;
    assert_eq!(columns, ["Name", "Ready", "Up-to-date", "Available", "Age"]);
    assert_eq!(cells, [json!("a"), json!("0/0"), json!(0), json!(0)]);
    Ok(())
}
