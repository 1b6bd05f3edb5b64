//! Does any secret of a whole run show anywhere but where it belongs?
//!
//! Secrets that can be recognized are used; whatever people can read without reading Secrets or seed images is collected all the
//! while and searched at the end: the log at its most talkative, metrics, every object but Secrets, and what Proxmox shows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DynamicObject, ListParams};
use kube::discovery::{Discovery, verbs};
use kube::{Client, ResourceExt};
use serde_json::json;
use tenon_api::names;
use tenon_sim::{
    Estate, FaultEffect, FaultMatch, FaultRule, GuestConfig, GuestFault, GuestFaultRule, GuestMatch, Repeat,
};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;

use crate::bench::quick_guests;
use crate::embedded::Log;
use crate::first_boot::{TEMPLATES, VALUES, add_secret, example, options, set_key, until_class_says, values};
use crate::ground::Kind;
use crate::world::{TOKEN, World};

/// A value that first-boot data needs.
const VALUE: &str = "needle-of-values-5e1f7a";
/// A secret of Proxmox that is wrong.
const WRONG: &str = "99999999-8888-7777-6666-0123456789ab";

/// What was seen: each text once, with where it was seen first.
type Seen = Arc<Mutex<BTreeMap<String, String>>>;

/// Everything that is collected, and everything that must not be in it.
#[derive(Clone, Default)]
struct Collected {
    seen: Seen,
    tokens: Arc<Mutex<BTreeSet<String>>>,
    seeds: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Collected {
    fn add(&self, place: &str, text: String) {
        lock(&self.seen).entry(text).or_insert_with(|| place.to_owned());
    }

    /// One look at everything.
    async fn look(&self, client: &Client, estate: &Estate) -> anyhow::Result<()> {
        for group in Discovery::new(client.clone()).run().await?.groups() {
            for (resource, capabilities) in group.recommended_resources() {
                if resource.kind == "Secret" || !capabilities.supports_operation(verbs::LIST) {
                    continue;
                }
                let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
                for object in objects.list(&ListParams::default()).await? {
                    self.add(&format!("{} {}", resource.kind, object.name_any()), serde_json::to_string(&object)?);
                }
            }
        }
        for vm in estate.vms() {
            self.add(&format!("VM {}", vm.vmid), format!("{vm:?}"));
        }
        let secrets: Api<Secret> = Api::namespaced(client.clone(), "kube-system");
        let ours = ListParams::default().labels(&format!("{}=true", names::LABEL_BOOTSTRAP_TOKEN));
        for secret in secrets.list(&ours).await? {
            let half = secret.data.unwrap_or_default().remove("token-secret").unwrap_or_default();
            lock(&self.tokens).insert(String::from_utf8(half.0)?);
        }
        for volume in estate.volumes().into_iter().filter(|volume| volume.content == "iso") {
            let image = estate.read_volume(&volume.volid).unwrap_or_default();
            lock(&self.seeds).insert(volume.volid, image.to_vec());
        }
        Ok(())
    }

    /// Looks again and again until it is dropped.
    async fn follow(self, client: Client, estate: Estate) {
        loop {
            // A look that fails is made good by the next; the last one is the test's own.
            drop(self.look(&client, &estate).await);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Where a secret is seen, as it is or in base64.
    fn places(&self, needle: &str) -> Vec<String> {
        let encoded = base64::engine::general_purpose::STANDARD.encode(needle);
        let encoded = encoded.trim_end_matches('=');
        let seen = lock(&self.seen);
        let shows = seen.iter().filter(|(text, _)| text.contains(needle) || text.contains(encoded));
        shows.map(|(text, place)| format!("{place}: {}", text.chars().take(2000).collect::<String>())).collect()
    }

    /// Whether some seed image has these bytes in it.
    fn is_in_a_seed(&self, needle: &str) -> bool {
        let has = |image: &Vec<u8>| image.windows(needle.len()).any(|part| part == needle.as_bytes());
        lock(&self.seeds).values().any(has)
    }
}

/// Templates that cannot be rendered, or whose output cannot be used, next to a secret value.
const BROKEN: [(&str, &str); 6] = [
    ("user-data", "#cloud-config\na: {{ index .Values.JoinSecret 99 }}\n"),
    ("user-data", "#cloud-config\na: {{ .Values.JoinSecret.nothing }}\n"),
    ("user-data", "#cloud-config\na: {{ template .Values.JoinSecret }}\n"),
    ("user-data", "#cloud-config\na: {{ slice .Values.JoinSecret 5 1 }}\n"),
    ("network-config", "{{ .Values.JoinSecret }}: [\n"),
    ("meta-data", "a: {{ .Values.JoinSecret }}: b: c\n"),
];

/// Every way a node can come, fail and go, in one world.
async fn whole_run(world: &mut World, collected: &Collected) -> anyhow::Result<()> {
    world.configure(WRONG)?;
    world.start_controller()?;
    world.deploy("web", 2).await?;
    world.let_pass(Duration::from_secs(10)).await?;
    world.kill_controller()?;
    world.configure(TOKEN.1)?;
    world.start_controller()?;
    let good = example_with_value()?;
    for (key, text) in BROKEN {
        set_key(world, (TEMPLATES, key), text).await?;
        until_class_says(world, "MetadataOptionsInvalid", &format!("key {key}")).await?;
        set_key(world, (TEMPLATES, key), good.get(key).map_or("", String::as_str)).await?;
    }
    let refused = FaultMatch::call("POST", "/nodes/*/storage/*/upload").times(1);
    world.estate.add_fault(FaultRule::new(refused, FaultEffect::DropReply));
    // The node of one VM never joins: its guest crashed.
    world.until_event("VMStopped", "stopped before Node").await?;
    // Nor does that of another, whose boot log is told, but for what it must not tell.
    for (reason, words) in [("NodeNotJoined", "Last lines of the boot log: "), ("RegistrationFailed", "last seen: ")] {
        let told = world
            .until_within(Duration::from_secs(400), &format!("an event {reason}"), async || {
                Ok(world.events(reason).await?.into_iter().find(|note| note.contains(words)))
            })
            .await?;
        anyhow::ensure!(told.contains("joins with (hidden) and (hidden)"), "{told}");
    }
    world.until_running("web", 2).await?;
    collected.add("metrics", world.served("metrics", "/metrics")?);
    world.kill_controller()?;
    world.start_controller()?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await
}

fn example_with_value() -> anyhow::Result<BTreeMap<String, String>> {
    let mut templates = example(TEMPLATES)?;
    let user_data = templates.get_mut("user-data").context("the example has no user-data")?;
    *user_data = user_data
        .replace("write_files:\n", "write_files:\n  - path: /etc/secret\n    content: {{ .Values.JoinSecret }}\n")
        .replace(
            "runcmd:\n",
            "runcmd:\n  - [echo, joins with, {{ .Kubernetes.BootstrapToken }}, and, {{ .Values.JoinSecret }}]\n",
        );
    anyhow::ensure!(user_data.matches("JoinSecret").count() == 2, "the example has changed:\n{user_data}");
    Ok(templates)
}

/// Logs of tasks, which anybody who may look at a host can read.
async fn task_logs(world: &World, collected: &Collected) -> anyhow::Result<usize> {
    let tasks = world.proxmox("GET", "/cluster/tasks", &[]).await?;
    let tasks = tasks["data"].as_array().cloned().unwrap_or_default();
    for task in &tasks {
        let (node, upid) = (task["node"].as_str().unwrap_or_default(), task["upid"].as_str().unwrap_or_default());
        let log = world.proxmox("GET", &format!("/nodes/{node}/tasks/{upid}/log"), &[]).await?;
        collected.add(&format!("task {upid}"), log.to_string());
    }
    Ok(tasks.len())
}

#[tokio::test(start_paused = true)]
async fn no_secret_of_a_whole_run_shows_where_it_does_not_belong() -> anyhow::Result<()> {
    let boot = |nth| GuestMatch { repeat: Repeat { nth: Some(nth), ..Repeat::default() }, ..GuestMatch::default() };
    let crashes = GuestFaultRule { when: boot(1), fault: GuestFault::Crashes { after: Duration::from_millis(50) } };
    let is_silent = GuestFaultRule { when: boot(2), fault: GuestFault::NeverJoins };
    let guests = GuestConfig { faults: vec![crashes, is_silent], ..quick_guests() };
    let mut world = World::new(Kind::Embedded, guests).await?.context("there is always an embedded world")?;
    let log = Log::default();
    // Everything of ours, and of libraries what the product lets through.
    let filter = Targets::new().with_default(LevelFilter::INFO).with_target("tenon", LevelFilter::TRACE);
    let layer = tracing_subscriber::fmt::layer().json().with_writer(log.clone()).with_filter(filter);
    let logged = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    world.remove_stock_approver().await?;
    world.use_csr_approver("true").await?;
    let mut values = values(&world)?;
    values.insert("JoinSecret".to_owned(), VALUE.to_owned());
    add_secret(&world, TEMPLATES, &example_with_value()?).await?;
    add_secret(&world, VALUES, &values).await?;
    for (host, vmid) in [("pve1", 9001), ("pve2", 9002), ("pve3", 9003)] {
        world.proxmox("PUT", &format!("/nodes/{host}/qemu/{vmid}/config"), &[("agent", "1")]).await?;
    }
    world.add_template("debian-13").await?;
    let mut class = options();
    class["timeouts"] = json!({ "registration": "4m" });
    world.add_class(class).await?;
    world.add_pool(json!({})).await?;
    let collected = Collected::default();
    let following = tokio::spawn(collected.clone().follow(world.admin.clone(), world.estate.clone()));
    whole_run(&mut world, &collected).await?;
    following.abort();
    collected.look(&world.admin, &world.estate).await?;
    collected.add("metrics", world.served("metrics", "/metrics")?);
    assert!(task_logs(&world, &collected).await? > 10);
    world.end().await?;
    drop(logged);
    collected.add("log", log.text());

    let tokens: Vec<String> = lock(&collected.tokens).iter().cloned().collect();
    assert!(tokens.len() >= 4, "two nodes came and two did not: {tokens:?}");
    for needle in tokens.iter().map(String::as_str).chain([VALUE, TOKEN.1, WRONG]) {
        let places = collected.places(needle);
        assert!(places.is_empty(), "{needle} is shown in {places:#?}");
    }
    // What is searched for is there, what is searched is not empty, and the search finds what is there.
    assert!(collected.is_in_a_seed(VALUE) && tokens.iter().any(|token| collected.is_in_a_seed(token)));
    for word in ["default", "claim=", "cannot", "karpenter_nodes_created_total", "CSRApproved", "UPID:"] {
        assert!(!collected.places(word).is_empty(), "nothing says {word}");
    }
    collected.add("a leak", format!("{{\"token\":\"{}\"}}", tokens[0]));
    assert_eq!(collected.places(&tokens[0]).len(), 1);
    Ok(())
}
