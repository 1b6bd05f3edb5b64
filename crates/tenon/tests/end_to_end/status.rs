//! What templates, classes and pools say of themselves, on a real API server and a simulated estate.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt};
use serde_json::json;
use tenon_api::plan_options::FeatureGates;
use tenon_api::{
    Condition, NodePool, ProxmoxNodeClass, ProxmoxNodeClassSpec, ProxmoxTemplate, ProxmoxUnmanagedTemplate,
    ProxmoxUnmanagedTemplateSpec,
};
use tenon_controllers::RegistrationBook;
use tenon_controllers::first_boot::NodeSecrets;
use tenon_controllers::join::JoinChecks;
use tenon_controllers::status::{StatusContext, pass};
use tenon_controllers::templates::{TemplateContext, TemplateMemory};
use tenon_model::VmIdRange;
use tenon_pve::{Endpoint, Token, Transport};
use tenon_sim::{Cluster, ClusterConfig, Estate, EstateConfig, TemplateSpec};

use crate::bench::{eventually, from_json, shared_testbed};

const SECRET: &str = "11111111-2222-3333-4444-555555555555";

struct Site {
    admin: Client,
    estate: Estate,
    context: StatusContext,
}

async fn site(admin: Client) -> anyhow::Result<Site> {
    let definitions: Api<CustomResourceDefinition> = Api::all(admin.clone());
    for definition in tenon_api::definitions() {
        let name = definition.name_any();
        definitions
            .create(&PostParams::default(), &definition)
            .await
            .with_context(|| format!("cannot install {name}"))?;
        let served = await_condition(definitions.clone(), &name, conditions::is_crd_established());
        tokio::time::timeout(Duration::from_secs(30), served).await??;
    }
    let estate = Estate::new(EstateConfig::default());
    let context = StatusContext {
        workload: admin.clone(),
        secrets: NodeSecrets::new(&admin, None),
        regions: BTreeMap::from([("lab".to_owned(), client(&estate, SECRET)?)]).into(),
        gates: FeatureGates::default(),
        join: JoinChecks::none(),
        registrations: RegistrationBook::default(),
    };
    // A definition that is established is served a moment later.
    let first = now()?;
    eventually("all kinds are served", async || Ok(pass(&context, &first).await.ok())).await?;
    Ok(Site { admin, estate, context })
}

fn client(estate: &Estate, secret: &str) -> anyhow::Result<tenon_pve::Client> {
    let endpoint = Endpoint::new("https://pve.example:8006").context("not an endpoint")?;
    let transport = Transport::over(estate.service(), |_| false);
    Ok(tenon_pve::Client::new(vec![endpoint], transport, Token::new("tenon@pve!sim", secret)?))
}

fn now() -> anyhow::Result<Time> {
    from_json(json!("2026-01-01T00:00:00Z"))
}

/// Status, reason and message of a condition.
fn told<'a>(conditions: Option<&'a Vec<Condition>>, type_: &str) -> (String, &'a str, &'a str) {
    let condition = conditions.into_iter().flatten().find(|condition| condition.type_ == type_);
    condition
        .map(|found| (format!("{:?}", found.status), found.reason.as_str(), found.message.as_str()))
        .unwrap_or_default()
}

impl Site {
    /// One pass, which says no more than it must: a second one writes nothing.
    async fn settle(&self) -> anyhow::Result<usize> {
        let written = pass(&self.context, &now()?).await?.written;
        assert_eq!(pass(&self.context, &now()?).await?.written, 0, "a second pass changes nothing");
        Ok(written)
    }

    async fn pool(&self) -> anyhow::Result<(String, String, String)> {
        let pool = Api::<NodePool>::all(self.admin.clone()).get("default").await?;
        let conditions = pool.status.and_then(|status| status.conditions);
        let (status, reason, message) = told(conditions.as_ref(), "NodeClassReady");
        Ok((status, reason.to_owned(), message.to_owned()))
    }

    async fn class(&self) -> anyhow::Result<(String, String, String)> {
        let class = Api::<ProxmoxNodeClass>::all(self.admin.clone()).get("default").await?;
        let conditions = class.status.and_then(|status| status.conditions);
        let (status, reason, message) = told(conditions.as_ref(), "InstanceTemplateReady");
        Ok((status, reason.to_owned(), message.to_owned()))
    }

    async fn template(&self) -> anyhow::Result<(String, String, Vec<String>)> {
        let template = Api::<ProxmoxUnmanagedTemplate>::all(self.admin.clone()).get("debian").await?;
        let status = template.status.unwrap_or_default();
        let (state, reason, _) = told(status.conditions.as_ref(), "Ready");
        Ok((state, reason.to_owned(), status.zones.unwrap_or_default()))
    }

    async fn create_pool(&self) -> anyhow::Result<()> {
        let pool: NodePool = from_json(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "default" },
            "spec": { "template": { "spec": {
                "requirements": [],
                "nodeClassRef": { "group": "karpenter.proxmox.sinextra.dev", "kind": "ProxmoxNodeClass", "name": "default" },
            } } },
        }))?;
        Api::all(self.admin.clone()).create(&PostParams::default(), &pool).await?;
        Ok(())
    }

    async fn create_class(&self) -> anyhow::Result<()> {
        let class: ProxmoxNodeClass = from_json(json!({
            "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxNodeClass", "metadata": { "name": "default" },
            "spec": {
                "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" },
                "metadataOptions": { "type": "cdrom" },
            },
        }))?;
        Api::all(self.admin.clone()).create(&PostParams::default(), &class).await?;
        Ok(())
    }

    async fn create_template(&self) -> anyhow::Result<()> {
        let template: ProxmoxUnmanagedTemplate = from_json(json!({
            "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxUnmanagedTemplate", "metadata": { "name": "debian" },
            "spec": { "templateName": "debian-13" },
        }))?;
        Api::all(self.admin.clone()).create(&PostParams::default(), &template).await?;
        Ok(())
    }
}

#[tokio::test]
async fn objects_say_what_is_in_the_way_and_a_second_look_changes_nothing() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let mut site = site(testbed.admin().await?).await?;
    site.create_pool().await?;
    site.settle().await?;
    let (status, reason, message) = site.pool().await?;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NodeClassNotFound"));
    assert!(message.contains("ProxmoxNodeClass default does not exist; create it"), "{message}");

    site.create_class().await?;
    site.settle().await?;
    let (_, reason, message) = site.class().await?;
    assert_eq!(reason, "TemplatesNotFound");
    assert!(message.contains("ProxmoxUnmanagedTemplate debian does not exist"), "{message}");
    assert_eq!(site.pool().await?.1, "TemplatesNotFound", "the pool says what its class says");

    site.create_template().await?;
    site.settle().await?;
    assert_eq!(site.template().await?.0, "False");

    for (vmid, host) in [(9001, "pve1"), (9002, "pve2")] {
        let template =
            TemplateSpec { host: host.to_owned(), vmid, name: "debian-13".to_owned(), ..TemplateSpec::default() };
        site.estate.add_template(&template)?;
    }
    site.settle().await?;
    assert_eq!(
        site.template().await?,
        ("True".to_owned(), "Ready".to_owned(), vec!["lab/pve1/9001".to_owned(), "lab/pve2/9002".to_owned()])
    );
    assert_eq!(site.class().await?.0, "True");
    assert_eq!(site.pool().await?.0, "True");

    lost_and_found(&mut site).await?;
    a_template_of_the_other_kind(&site).await?;
    managed_templates_and_objects_without_a_spec(&site).await
}

#[tokio::test]
async fn an_embedded_server_is_told_of_managed_templates_and_objects_without_a_spec() -> anyhow::Result<()> {
    let cluster = Cluster::new(ClusterConfig::default())?;
    managed_templates_and_objects_without_a_spec(&site(cluster.client()).await?).await
}

/// A ProxmoxTemplate, and objects without a spec: each is told of, and nothing else suffers.
async fn managed_templates_and_objects_without_a_spec(site: &Site) -> anyhow::Result<()> {
    let version = "karpenter.proxmox.sinextra.dev/v1alpha1";
    let spec = json!({
        "sourceImage": { "url": "https://images.example.com/a.qcow2" }, "storageIDs": ["local"],
        "network": [{ "bridge": "vmbr0" }],
    });
    let post = PostParams::default();
    let templates: Api<ProxmoxTemplate> = Api::all(site.admin.clone());
    for (name, spec) in [("made", spec), ("bare", json!(null))] {
        let template =
            json!({ "apiVersion": version, "kind": "ProxmoxTemplate", "metadata": { "name": name }, "spec": spec });
        templates.create(&post, &from_json(template)?).await?;
    }
    let (classes, found): (Api<ProxmoxNodeClass>, Api<ProxmoxUnmanagedTemplate>) =
        (Api::all(site.admin.clone()), Api::all(site.admin.clone()));
    classes.create(&post, &ProxmoxNodeClass::new("bare", ProxmoxNodeClassSpec::default())).await?;
    found.create(&post, &ProxmoxUnmanagedTemplate::new("bare", ProxmoxUnmanagedTemplateSpec::default())).await?;
    let managed = TemplateContext {
        workload: site.admin.clone(),
        regions: site.context.regions.clone(),
        cluster_id: "cluster-1".to_owned(),
        node_ids: VmIdRange::default(),
        memory: TemplateMemory::default(),
    };
    tenon_controllers::templates::pass(&managed, &now()?).await?;
    site.settle().await?;

    for (name, expected, says) in [
        ("made", ("Unknown", "NodeTemplateClassResolutionError"), "host pve1 downloads the image to storage local"),
        ("bare", ("False", "TemplateValidation"), "spec is missing"),
    ] {
        let template = templates.get(name).await?;
        // What a Go controller's number stands for is noted on first sight, or nobody could tell later whether it changed.
        let is_noted = template.annotations().contains_key("tenon.dev/template-seen");
        assert_eq!(is_noted, name == "made", "{name}: {:?}", template.annotations());
        let status = template.status.unwrap_or_default();
        let (state, reason, message) = told(status.conditions.as_ref(), "ProxmoxVirtualMachineTemplateReady");
        assert_eq!((state.as_str(), reason), expected, "{name}");
        assert!(message.contains(says), "{message}");
        assert_eq!(told(status.conditions.as_ref(), "Ready").0, expected.0, "{name}");
    }
    let conditions = classes.get("bare").await?.status.and_then(|status| status.conditions);
    let (_, reason, message) = told(conditions.as_ref(), "InstanceTemplateReady");
    assert!(reason == "TemplatesNotFound" && message.contains("spec is missing"), "{reason}: {message}");
    let conditions = found.get("bare").await?.status.and_then(|status| status.conditions);
    assert_eq!(told(conditions.as_ref(), "ProxmoxVirtualMachineTemplateReady").1, "TemplateValidation");
    Ok(())
}

/// A token that stops working leaves what was known in place, is named, and mends by itself.
async fn lost_and_found(site: &mut Site) -> anyhow::Result<()> {
    let good = site.context.regions.clone();
    site.context.regions = BTreeMap::from([("lab".to_owned(), client(&site.estate, "wrong")?)]).into();
    site.settle().await?;
    let (status, reason, zones) = site.template().await?;
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "ReconcilingDependents"));
    assert_eq!(zones.len(), 2, "what was found is not forgotten");
    let template = Api::<ProxmoxUnmanagedTemplate>::all(site.admin.clone()).get("debian").await?;
    let conditions = template.status.and_then(|status| status.conditions);
    let (_, reason, message) = told(conditions.as_ref(), "ProxmoxVirtualMachineTemplateReady");
    assert_eq!(reason, "RegionUnreachable");
    assert!(message.contains("Authentication failed!") && message.contains("check the token"), "{message}");
    assert!(!message.contains("wrong"), "the secret is in the message: {message}");
    site.context.regions = good;
    site.settle().await?;
    assert_eq!(site.template().await?.0, "True");
    Ok(())
}

/// A template of the other kind is looked for under that kind, even if there is one of the same name.
async fn a_template_of_the_other_kind(site: &Site) -> anyhow::Result<()> {
    let classes: Api<ProxmoxNodeClass> = Api::all(site.admin.clone());
    let managed = json!({ "spec": { "instanceTemplateRef": { "kind": "ProxmoxTemplate", "name": "debian" } } });
    classes.patch("default", &PatchParams::default(), &Patch::Merge(managed)).await?;
    site.settle().await?;
    let (_, reason, message) = site.class().await?;
    assert_eq!(reason, "TemplatesNotFound");
    assert!(message.starts_with("ProxmoxTemplate debian does not exist"), "{message}");
    assert_eq!(site.pool().await?.1, "TemplatesNotFound");
    Ok(())
}

/// What a class says of its first-boot data.
async fn metadata(site: &Site) -> anyhow::Result<(String, String)> {
    let class = Api::<ProxmoxNodeClass>::all(site.admin.clone()).get("default").await?;
    let conditions = class.status.and_then(|status| status.conditions);
    let (status, _, message) = told(conditions.as_ref(), "InstanceMetadataOptionsReady");
    Ok((status, message.to_owned()))
}

#[tokio::test]
async fn a_verdict_on_templates_stays_while_proxmox_does_not_show_the_cards_of_a_vm() -> anyhow::Result<()> {
    let cluster = Cluster::new(ClusterConfig::default())?;
    let mut site = site(cluster.client()).await?;
    let template = TemplateSpec { vmid: 9001, name: "debian-13".to_owned(), ..TemplateSpec::default() };
    site.estate.add_template(&template)?;
    site.create_template().await?;
    site.create_pool().await?;
    site.create_class().await?;
    let reference = json!({ "name": "worker", "namespace": "kube-system" });
    let options =
        json!({ "spec": { "metadataOptions": { "type": "cdrom", "templatesRef": reference, "valuesRef": {} } } });
    let classes: Api<ProxmoxNodeClass> = Api::all(site.admin.clone());
    classes.patch("default", &PatchParams::default(), &Patch::Merge(options)).await?;
    let secrets: Api<Secret> = Api::namespaced(site.admin.clone(), "kube-system");
    // Only a card and a bridge tell whether this works.
    let template = |text: &str| json!({ "metadata": { "name": "worker" }, "data": { "network-config": base64(text) } });
    let good = template("a: {{ range .Interfaces }}{{ cidrhost .NodeAddress4 }}{{ end }}\n");
    secrets.create(&PostParams::default(), &from_json(good)?).await?;
    site.settle().await?;
    assert_eq!(metadata(&site).await?, ("True".to_owned(), String::new()));
    let faulty = template("a: {{ (index .Interfaces 5).Name }}\n");
    secrets.patch("worker", &PatchParams::default(), &Patch::Merge(faulty)).await?;
    site.settle().await?;
    let (status, message) = metadata(&site).await?;
    assert!(status == "False" && message.contains("line 1, column"), "{status} {message}");

    let regions = site.context.regions.clone();
    site.context.regions = BTreeMap::from([("lab".to_owned(), client(&site.estate, "wrong")?)]).into();
    site.settle().await?;
    assert_eq!(metadata(&site).await?, (status, message), "what cannot be tried again stays as it was");
    site.context.regions = regions;
    secrets.patch("worker", &PatchParams::default(), &Patch::Merge(template("a: b\n"))).await?;
    site.settle().await?;
    assert_eq!(metadata(&site).await?.0, "True");
    Ok(())
}

#[tokio::test]
async fn a_class_of_another_cluster_reaches_only_secrets_that_are_meant_for_nodes() -> anyhow::Result<()> {
    let (cluster, home) = (Cluster::new(ClusterConfig::default())?, Cluster::new(ClusterConfig::default())?);
    let mut site = site(cluster.client()).await?;
    site.context.secrets = NodeSecrets::new(&site.admin, Some(home.client()));
    site.create_template().await?;
    site.create_class().await?;
    let reference = json!({ "name": "worker", "namespace": "kube-system" });
    let options = json!({ "spec": { "metadataOptions": { "type": "cdrom", "templatesRef": reference } } });
    let classes: Api<ProxmoxNodeClass> = Api::all(site.admin.clone());
    classes.patch("default", &PatchParams::default(), &Patch::Merge(options)).await?;
    let secret = json!({ "metadata": { "name": "worker" }, "data": { "user-data": base64("#cloud-config\n") } });
    let secret: Secret = from_json(secret)?;
    // One of the class's own cluster is not looked at.
    Api::namespaced(site.admin.clone(), "kube-system").create(&PostParams::default(), &secret).await?;
    site.settle().await?;
    assert!(metadata(&site).await?.1.contains("does not exist"), "{:?}", metadata(&site).await?);
    let secrets: Api<Secret> = Api::namespaced(home.client(), "kube-system");
    secrets.create(&PostParams::default(), &secret).await?;
    site.settle().await?;
    assert!(metadata(&site).await?.1.contains("label tenon.dev/node-data"), "{:?}", metadata(&site).await?);
    let label = json!({ "metadata": { "labels": { "tenon.dev/node-data": "" } } });
    secrets.patch("worker", &PatchParams::default(), &Patch::Merge(label)).await?;
    site.settle().await?;
    assert_eq!(metadata(&site).await?.0, "True");
    Ok(())
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}
