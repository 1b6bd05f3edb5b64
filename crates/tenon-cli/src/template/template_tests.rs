//! `tenon template status` against an API server in memory.

use kube::Client;
use kube::api::{Api, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tenon_api::{NodeClaim, ProxmoxTemplate, ProxmoxUnmanagedTemplate, hash};
use tenon_sim::{Cluster, ClusterConfig};

use super::look::look;
use super::table::table;

const GROUP: &str = "karpenter.proxmox.sinextra.dev";

async fn cluster() -> (Cluster, Client) {
    let cluster = Cluster::new(ClusterConfig::default()).unwrap();
    let client = cluster.client();
    for definition in tenon_api::definitions() {
        Api::all(client.clone()).create(&PostParams::default(), &definition).await.unwrap();
    }
    (cluster, client)
}

/// Creates an object with the status it is given.
async fn create<K>(client: &Client, object: Value)
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    let api = Api::<K>::all(client.clone());
    let made = api.create(&PostParams::default(), &serde_json::from_value(object.clone()).unwrap()).await.unwrap();
    if let Some(status) = object.get("status") {
        let patch = json!({ "status": status });
        let name = kube::ResourceExt::name_any(&made);
        api.patch_status(&name, &Default::default(), &kube::api::Patch::Merge(&patch)).await.unwrap();
    }
}

fn conditions(status: &str, reason: &str, message: &str) -> Value {
    let at = "2026-01-01T00:00:00Z";
    json!([
        { "type": "ProxmoxVirtualMachineTemplateReady", "status": status, "reason": reason, "message": message, "lastTransitionTime": at },
        { "type": "Ready", "status": status, "reason": reason, "message": "", "lastTransitionTime": at },
    ])
}

fn spec(url: &str) -> Value {
    json!({ "sourceImage": { "url": url }, "storageIDs": ["local"], "network": [{ "bridge": "vmbr0" }] })
}

fn build(host: &str, vmid: u32, number: &str, more: &Value) -> Value {
    let mut build = json!({ "region": "lab", "host": host, "vmid": vmid, "number": number, "imageStorage": "local",
        "imageName": "debian-13.qcow2", "diskStorage": "local", "step": "Ready", "attempt": 0, "uuid": "u", "startedAt": 1,
        "lastProgressAt": 1 });
    build.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    build
}

fn claim(name: &str, template: u32) -> Value {
    let record = json!({ "region": "lab", "host": "pve1", "vmid": 20007, "template": template, "step": "Launched", "attempt": 1,
        "uuid": "6a1f7b9e-0000-4000-8000-000000000007", "startedAt": 1, "lastProgressAt": 1 });
    json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": { "name": name, "annotations": { "tenon.dev/launch": record.to_string() } },
        "spec": { "requirements": [], "nodeClassRef": { "group": GROUP, "kind": "ProxmoxNodeClass", "name": "x" } } })
}

/// Version 2 is wanted and comes; version 1 is on its way out.
async fn rolling(client: &Client) -> String {
    let spec = spec("https://images.example.com/debian-13.2.qcow2");
    let read: ProxmoxTemplate =
        serde_json::from_value(json!({ "metadata": { "name": "debian" }, "spec": spec })).unwrap();
    let number = hash::of_template(&read.spec);
    let builds = json!([
        build("pve2", 1002, &number, &json!({ "step": "Download", "progress": 40 })),
        build("pve1", 1000, "17", &json!({ "step": "Destroy", "retired": true, "clones": 2 })),
        build("pve1", 1001, &number, &json!({ "clones": 3 })),
        build("pve3", 1003, &number, &json!({ "step": "Create", "attempt": 3, "error": "storage local is full" })),
    ]);
    let object = json!({ "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ProxmoxTemplate", "spec": spec,
        "metadata": { "name": "debian", "annotations": { "tenon.dev/template-builds": builds.to_string(),
            format!("{GROUP}/proxmoxtemplate-hash"): number } },
        "status": { "zones": ["lab/pve1/1001"], "imageID": "debian-13-1.qcow2",
            "conditions": conditions("True", "ProxmoxVirtualMachineTemplateReady", "no VM template on host pve3 yet") } });
    create::<ProxmoxTemplate>(client, object).await;
    number
}

#[tokio::test(start_paused = true)]
async fn a_managed_template_is_shown_host_by_host() {
    let (_cluster, client) = cluster().await;
    let number = rolling(&client).await;
    for (name, template) in [("web-b", 1000), ("web-a", 1000), ("web-c", 1001), ("other", 9000)] {
        create::<NodeClaim>(&client, claim(name, template)).await;
    }
    // Their VMs were cloned by another controller: what from, only the version says.
    for (name, version) in [("go-a", "17"), ("go-b", "18")] {
        let mut adopted = claim(name, 20007);
        adopted["status"] = json!({ "imageID": version });
        create::<NodeClaim>(&client, adopted).await;
    }
    let shown = look(&client, "debian").await.unwrap();
    assert_eq!(
        table(&shown),
        format!(
            "ProxmoxTemplate debian: Ready\n\
             no VM template on host pve3 yet\n\
             Image debian-13-1.qcow2\n\
             Version {number}\n\
             \n\
             REGION  HOST  VM ID  VERSION   STATE                   STORAGE  NODECLAIMS  CLONES\n\
             lab     pve1  1000   old (17)  Destroy                 local    3           2\n\
             lab     pve1  1001   current   Ready, in use           local    1           3\n\
             lab     pve2  1002   current   Download 40 %           local    0           -\n\
             lab     pve3  1003   current   Create, failed 3 times  local    0           -\n\
             \n\
             VM 1003 on host pve3 (region lab): storage local is full\n"
        )
    );
    let json = serde_json::to_value(&shown).unwrap();
    let row = &json[0]["templates"][0];
    assert_eq!(
        (&row["nodeClaims"], &row["clones"], &row["current"]),
        (&json!(["go-a", "web-a", "web-b"]), &json!(2), &json!(false))
    );
    assert_eq!((&json[0]["version"], &json[0]["ready"]["status"]), (&json!(number), &json!("True")));
    assert_eq!(
        (&json[0]["templates"][2]["progress"], &json[0]["templates"][2]["step"]),
        (&json!(40), &json!("Download"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_unmanaged_template_is_shown_with_the_one_that_is_used() {
    let (_cluster, client) = cluster().await;
    let object = json!({ "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ProxmoxUnmanagedTemplate",
        "metadata": { "name": "debian" }, "spec": { "templateName": "debian" },
        "status": { "zones": ["lab/pve1/10000", "lab/pve1/9001", "lab/pve2/9002"] } });
    create::<ProxmoxUnmanagedTemplate>(&client, object).await;
    create::<NodeClaim>(&client, claim("web-a", 9001)).await;
    let shown = look(&client, "debian").await.unwrap();
    assert_eq!(
        table(&shown),
        "ProxmoxUnmanagedTemplate debian: the controller has not looked at it yet; check that it runs\n\
         \n\
         REGION  HOST  VM ID  VERSION  STATE     STORAGE  NODECLAIMS  CLONES\n\
         lab     pve1  9001   -        in use    -        1           -\n\
         lab     pve1  10000  -        not used  -        0           -\n\
         lab     pve2  9002   -        in use    -        0           -\n"
    );
}

#[tokio::test(start_paused = true)]
async fn both_kinds_of_a_name_are_shown_and_none_is_an_error_that_names_others() {
    let (_cluster, client) = cluster().await;
    let told = look(&client, "debian").await.unwrap_err().to_string();
    let none =
        "ProxmoxTemplate or ProxmoxUnmanagedTemplate debian does not exist in the cluster; it has no templates at all";
    assert_eq!(told, none);
    rolling(&client).await;
    let object = json!({ "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ProxmoxUnmanagedTemplate",
        "metadata": { "name": "debian" }, "spec": { "templateName": "debian" },
        "status": { "conditions": conditions("False", "TemplatesNotFound", "no VM template named debian") } });
    create::<ProxmoxUnmanagedTemplate>(&client, object).await;
    let shown = look(&client, "debian").await.unwrap();
    assert_eq!(
        shown.iter().map(|shown| shown.kind.as_str()).collect::<Vec<_>>(),
        ["ProxmoxTemplate", "ProxmoxUnmanagedTemplate"]
    );
    let text = table(&shown);
    let told = "ProxmoxUnmanagedTemplate debian: Ready is False (TemplatesNotFound)\nno VM template named debian\n\nThere are no";
    assert!(text.contains(told), "{text}");
    let told = look(&client, "absent").await.unwrap_err().to_string();
    assert!(told.ends_with("which has ProxmoxTemplate debian, ProxmoxUnmanagedTemplate debian"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_read_is_told() {
    let (_cluster, client) = cluster().await;
    let object = json!({ "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ProxmoxTemplate",
        "metadata": { "name": "debian", "annotations": { "tenon.dev/template-builds": "[{" } },
        "spec": spec("https://images.example.com/debian.qcow2"), "status": { "zones": ["lab/pve1/1001"] } });
    create::<ProxmoxTemplate>(&client, object).await;
    let text = table(&look(&client, "debian").await.unwrap());
    assert!(text.contains("cannot read annotation tenon.dev/template-builds: "), "{text}");
    assert!(text.contains("lab     pve1  1001"), "what the status says is shown all the same: {text}");
}
