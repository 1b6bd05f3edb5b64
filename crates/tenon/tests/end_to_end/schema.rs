//! Does the simulated admission of custom resources agree with a real API server?
//!
//! Every object is sent to a real server as a dry run and given to `admit()`. Both must accept it and make the same
//! of it, or both must refuse it for the same fields. The seed of the random objects is printed and can be given in
//! `SCHEMA_SEED`, their number in `SCHEMA_ROUNDS`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tenon_sim::cluster_schema::admit;
use testbed::own_testbed;

use crate::bench::{eventually, from_json};
use crate::schema_samples::{Dice, change, definition, keyword_objects, keyword_schema, own_objects, strict_and_lax};

const SEED: u64 = 20_260_101;
const ROUNDS: u64 = 400;

/// What came of an object: as stored, or the causes of a refusal as field, reason and message.
type Verdict = Result<Value, BTreeSet<(String, String, String)>>;

/// A definition that is installed.
struct Kind {
    url: String,
    schema: Value,
}

struct Bench {
    client: Client,
    kinds: BTreeMap<String, Kind>,
    compared: usize,
    gaps: usize,
    accepted: usize,
    same_words: usize,
    other_words: BTreeSet<String>,
    differences: Vec<String>,
}

impl Bench {
    async fn install(&mut self, mut definition: Value) -> anyhow::Result<()> {
        // Without the subresource, a status is an ordinary field, so that its schema is compared too.
        definition["spec"]["versions"][0].as_object_mut().context("no version")?.remove("subresources");
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let parsed: CustomResourceDefinition = from_json(definition.clone())?;
        let name = parsed.name_any();
        definitions.create(&PostParams::default(), &parsed).await.with_context(|| format!("cannot install {name}"))?;
        let served = await_condition(definitions, &name, conditions::is_crd_established());
        tokio::time::timeout(Duration::from_secs(30), served).await??;
        let version = &parsed.spec.versions[0].name;
        let place = if parsed.spec.scope == "Namespaced" { "namespaces/default/" } else { "" };
        let url = format!("/apis/{}/{version}/{place}{}", parsed.spec.group, parsed.spec.names.plural);
        let schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
        self.kinds.insert(parsed.spec.names.kind, Kind { url: url.clone(), schema });
        eventually("the kind is served", async || Ok(self.send("GET", &url, &Value::Null).await?.ok())).await?;
        Ok(())
    }

    fn kind(&self, object: &Value) -> anyhow::Result<&Kind> {
        let kind = object["kind"].as_str().context("no kind")?;
        self.kinds.get(kind).with_context(|| format!("{kind} is not installed"))
    }

    async fn send(&self, method: &str, url: &str, body: &Value) -> anyhow::Result<kube::Result<Value>> {
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body)? };
        let request = http::Request::builder().method(method).uri(url).header("content-type", "application/json");
        Ok(self.client.request(request.body(body)?).await)
    }

    /// The real server's verdict; none if it refuses for a reason that is no admission of the schema.
    async fn verdict(&self, object: &Value, old: Option<&Value>) -> anyhow::Result<Option<Verdict>> {
        let url = &self.kind(object)?.url;
        let sent = match old {
            None => self.send("POST", &format!("{url}?dryRun=All"), object).await?,
            Some(_) => {
                let name = object["metadata"]["name"].as_str().context("no name")?;
                self.send("PUT", &format!("{url}/{name}?dryRun=All"), object).await?
            }
        };
        match sent {
            Ok(made) => Ok(Some(Ok(made))),
            Err(kube::Error::Api(status)) if status.code == 422 => {
                let causes = status.details.map(|details| details.causes).unwrap_or_default();
                Ok(Some(Err(causes.into_iter().map(|cause| (cause.field, cause.reason, cause.message)).collect())))
            }
            Err(kube::Error::Api(status)) if status.code == 400 => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Compares the two servers over one object.
    async fn compare(&mut self, object: &Value, old: Option<&Value>) -> anyhow::Result<()> {
        let Some(real) = self.verdict(object, old).await? else { return Ok(()) };
        if is_known_gap(&real) {
            self.gaps += 1;
            return Ok(());
        }
        let mut made = object.clone();
        let admitted = admit(&self.kind(object)?.schema, &mut made, old);
        let ours: Verdict = match admitted {
            Ok(()) => Ok(made),
            Err(errors) => {
                Err(errors.into_iter().map(|error| (error.field, error.reason.to_string(), error.message)).collect())
            }
        };
        self.compared += 1;
        let same = match (&real, &ours) {
            (Ok(real), Ok(ours)) => {
                self.accepted += 1;
                body(real) == body(ours)
            }
            (Err(real), Err(ours)) => {
                if real == ours {
                    self.same_words += 1;
                } else {
                    let lost = real.difference(ours).map(|cause| format!("- {cause:?}"));
                    let extra = ours.difference(real).map(|cause| format!("+ {cause:?}"));
                    self.other_words.insert(lost.chain(extra).collect::<Vec<_>>().join("\n  "));
                }
                fields(real) == fields(ours)
            }
            _ => false,
        };
        if !same {
            let update = old.map(|old| format!("\n  old  {}", body(old))).unwrap_or_default();
            self.differences.push(format!("{}{update}\n  real {}\n  ours {}", body(object), told(&real), told(&ours)));
        }
        Ok(())
    }

    /// Stores an object and returns it as stored.
    async fn store(&self, object: &Value) -> anyhow::Result<Value> {
        let url = &self.kind(object)?.url;
        self.send("POST", url, object).await?.with_context(|| format!("cannot store {object}"))
    }
}

/// The documented gap: a rule of a parent reads an integer that is written `1.0`.
fn is_known_gap(real: &Verdict) -> bool {
    let unread = ["expected int, got float64", "expected XIntOrString value"];
    let read_by_rule = |(_, _, message): &(String, String, String)| unread.iter().any(|words| message.contains(words));
    real.as_ref().is_err_and(|causes| causes.iter().any(read_by_rule))
}

/// An object without what only a server can know.
fn body(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("metadata");
    }
    object
}

fn fields(causes: &BTreeSet<(String, String, String)>) -> BTreeSet<&String> {
    causes.iter().map(|(field, _, _)| field).collect()
}

fn told(verdict: &Verdict) -> String {
    match verdict {
        Ok(made) => format!("accepted as {}", body(made)),
        Err(causes) => format!("refused for {causes:?}"),
    }
}

fn number(variable: &str, usual: u64) -> anyhow::Result<u64> {
    std::env::var(variable).map_or(Ok(usual), |text| text.parse().context(format!("{variable} is no number")))
}

async fn bench(client: Client) -> anyhow::Result<Bench> {
    let mut bench = Bench {
        client,
        kinds: BTreeMap::new(),
        compared: 0,
        gaps: 0,
        accepted: 0,
        same_words: 0,
        other_words: BTreeSet::new(),
        differences: Vec::new(),
    };
    for definition in tenon_api::definitions() {
        bench.install(serde_json::to_value(&definition)?).await?;
    }
    bench.install(definition("Keyword", &keyword_schema())).await?;
    Ok(bench)
}

/// Objects that are known to be interesting, and random changes of valid ones: as creations and as updates.
async fn compare_all(bench: &mut Bench) -> anyhow::Result<()> {
    let (seed, rounds) = (number("SCHEMA_SEED", SEED)?, number("SCHEMA_ROUNDS", ROUNDS)?);
    println!("SCHEMA_SEED={seed} SCHEMA_ROUNDS={rounds}");
    for object in keyword_objects() {
        bench.compare(&object, None).await?;
    }
    let valid = own_objects();
    let mut stored = Vec::new();
    for object in &valid {
        bench.compare(object, None).await?;
        stored.push(bench.store(object).await?);
    }
    let mut dice = Dice::new(seed);
    for _ in 0..rounds {
        let old = &stored[dice.below(stored.len())];
        let update = dice.below(3) == 0;
        let mut object = old.clone();
        if !update {
            let name = object["metadata"]["name"].clone();
            object["metadata"] = json!({ "name": format!("{}-new", name.as_str().unwrap_or_default()) });
        }
        for _ in 0..=dice.below(3) {
            change(&mut object, &bench.kind(old)?.schema, &mut dice);
        }
        bench.compare(&object, update.then_some(old)).await?;
    }
    Ok(())
}

/// What was stored under a lax schema and breaks a strict one: the unchanged parts are forgiven.
async fn compare_forgiveness(bench: &mut Bench) -> anyhow::Result<()> {
    let (strict, lax) = strict_and_lax();
    bench.install(definition("Pardon", &lax)).await?;
    let bad = json!({
        "apiVersion": "schema.test/v1", "kind": "Pardon", "metadata": { "name": "old" },
        "spec": {
            "short": "far too long", "count": 99, "word": "unlisted",
            "list": ["also too long", "b"], "map": { "a": "far too long", "b": "b" },
            "rows": [{ "name": "one", "size": 99 }, { "name": "two", "size": 1 }],
            "twice": ["a", "a"], "ruled": 99,
        },
    });
    let old = bench.store(&bad).await?;
    let patch = json!({ "spec": { "versions": definition("Pardon", &strict)["spec"]["versions"] } });
    let definitions: Api<CustomResourceDefinition> = Api::all(bench.client.clone());
    definitions.patch("pardons.schema.test", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    bench.kinds.get_mut("Pardon").context("not installed")?.schema = strict;
    let mut fresh = bad.clone();
    fresh["metadata"]["name"] = "new".into();
    let refused = async || Ok(bench.verdict(&fresh, None).await?.filter(Result::is_err));
    drop(eventually("the strict schema is in force", refused).await?);
    bench.compare(&fresh, None).await?;
    bench.compare(&old, Some(&old)).await?;
    let mut dice = Dice::new(number("SCHEMA_SEED", SEED)?);
    for _ in 0..number("SCHEMA_ROUNDS", ROUNDS)? / 4 {
        let mut object = old.clone();
        for _ in 0..=dice.below(2) {
            change(&mut object, &bench.kind(&old)?.schema, &mut dice);
        }
        bench.compare(&object, Some(&old)).await?;
    }
    Ok(())
}

#[tokio::test]
async fn admission_agrees_with_a_real_server() -> anyhow::Result<()> {
    let Some(testbed) = own_testbed()? else { return Ok(()) };
    let mut bench = bench(testbed.admin().await?).await?;
    compare_all(&mut bench).await?;
    compare_forgiveness(&mut bench).await?;
    let refused = bench.compared - bench.accepted;
    println!("{} compared, {} accepted, {refused} refused; {} known gaps", bench.compared, bench.accepted, bench.gaps);
    println!("{} refusals in the very same words; the other words:", bench.same_words);
    bench.other_words.iter().for_each(|words| println!("  {words}"));
    let differences = bench.differences.join("\n");
    ensure!(differences.is_empty(), "{} differences:\n{differences}", bench.differences.len());
    Ok(())
}
