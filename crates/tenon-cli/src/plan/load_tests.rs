//! What files can look like, and the errors in those that cannot be read.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use tenon_api::planning::is_provisionable;

use super::collect::{Collected, Collector};
use super::load::read_text;
use super::supply::Supply;
use super::{Input, Plan, gather};

pub(super) const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c}]}\n";
const CLOUD: &str = "clusters: [{region: lab, url: 'https://pve:8006', token_id: a@b!c, token_secret: d}]";
pub(super) const TYPES: &str = r#"[{"name":"m4","capacity":{"cpu":"4","memory":"16Gi","pods":"30"}}]"#;

pub(super) fn read(name: &str, text: &str) -> Result<Collected, String> {
    let mut collector = Collector::default();
    read_text(&Arc::from(name), text, &mut collector).map_err(|fault| fault.to_string())?;
    collector.finish().map_err(|fault| fault.to_string())
}

fn pod_names(name: &str, text: &str) -> Vec<String> {
    let found = read(name, text).unwrap_or_else(|fault| panic!("{text}\n{fault}"));
    found.objects.pods.iter().map(|pod| pod.name().to_owned()).collect()
}

fn pod_yaml(name: &str) -> String {
    POD.replace("name: a", &format!("name: {name}"))
}

pub(super) fn pod_json(name: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}"}},"spec":{{"containers":[{{"name":"c"}}]}}}}"#
    )
}

pub(super) fn indented(text: &str) -> String {
    text.lines().enumerate().map(|(index, line)| format!("{}{line}\n", if index == 0 { "- " } else { "  " })).collect()
}

#[test]
fn objects_are_found_however_they_are_written_down() {
    let (yaml_a, yaml_b, json_a, json_b) = (pod_yaml("a"), pod_yaml("b"), pod_json("a"), pod_json("b"));
    let items = format!("{}{}", indented(&yaml_a), indented(&yaml_b));
    let bare = r#"{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}"#;
    for text in [
        format!("{yaml_a}---\n{yaml_b}"),
        format!("\u{feff}# first\n---\n---\n{yaml_a}...\n--- # second\n{yaml_b}---\n"),
        format!("{yaml_a}---\n{json_b}\n").replace('\n', "\r\n"),
        format!("{json_a}\n{json_b}"),
        format!("{json_a}{json_b}\n"),
        format!("---\n[{json_a},\n{json_b}]"),
        format!(r#"{{"apiVersion":"v1","kind":"List","items":[{json_a}, {json_b}]}}"#),
        format!(r#"{{"items":[{bare}],"kind":"PodList","apiVersion":"v1"}}"#),
        format!("apiVersion: v1\nitems:\n{items}kind: List\n"),
        format!("apiVersion: v1\nkind: List\nitems:\n\n# both\n{items}"),
        format!("apiVersion: v1\nkind: PodList\nitems: [{bare}]\n"),
        "{apiVersion: v1, kind: PodList, items: [{metadata: {name: a}}, {metadata: {name: b}}]}".to_owned(),
        format!("kind: List\napiVersion: v1\nitems: &all\n{items}"),
        items.clone(),
        format!("[{json_a}, {}]", "{apiVersion: v1, kind: Pod, metadata: {name: b}}"),
        format!("{yaml_a}---\nnull\n--- ~\n---\n{yaml_b}"),
        // What looks like an anchor is none, and one that is used in its own object stays with it.
        format!("apiVersion: v1\nkind: List\nitems:\n{items}")
            .replace("{name: c}", "{name: &c c, args: ['x: &1', *c]}"),
        "apiVersion: v1\nkind: PodList\nitems:\n- metadata: &m {name: a}\n- metadata: {<<: *m, name: b}\n".to_owned(),
    ] {
        assert_eq!(pod_names("x.yaml", &text), ["a", "b"], "{text}");
    }
    let allow =
        "apiVersion: x/v1\nkind: AllowList\n---\n{\"apiVersion\": \"x/v1\", \"kind\": \"AllowList\", \"items\": 5}";
    assert_eq!(read("x.yaml", allow).unwrap().notes, ["ignored 2 AllowList of x/v1: this kind does not affect a plan"]);
    for nothing in
        ["", "\n\n", "# words\n", "---\n---\n", "apiVersion: v1\nkind: PodList\nitems: []\n", "kind: List\nitems:\n"]
    {
        assert!(pod_names("x.yaml", nothing).is_empty(), "{nothing}");
    }
}

#[test]
fn what_does_not_affect_a_plan_is_counted() {
    let text = "apiVersion: v1\nkind: Secret\nwhatever: [1]\n---\napiVersion: v1\nkind: Secret\n---\n\
                apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nspec: 5\n---\n\
                apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: c}\nspec: {nodeClassRef: {group: g, kind: k, name: n}}\n";
    let Collected { objects, notes, .. } = read("x.yaml", text).unwrap();
    assert!(objects.node_claims.is_empty() && objects.node_pools.is_empty());
    assert_eq!(
        notes,
        [
            "ignored 1 NodePool of karpenter.sh/v1beta1: only NodePool of karpenter.sh/v1 is supported",
            "ignored 2 Secret of v1: this kind does not affect a plan",
            "ignored 1 NodeClaim without status.providerID: no VM exists yet",
        ]
    );
}

#[test]
fn a_pod_that_no_scheduler_has_tried_is_noted() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: x}]}\n";
    let notes = read("x.yaml", &format!("{pod}status: {{phase: Pending}}\n")).unwrap().notes;
    assert!(notes.iter().any(|note| note.starts_with("ignored 1 pod without a node")), "{notes:?}");
    let gated = pod.replace("spec: {", "spec: {schedulingGates: [{name: g}], ");
    let ready = "status: {conditions: [{type: Initialized, status: 'True'}]}\n";
    let both = format!("{gated}---\n{}{ready}", pod.replace("name: a", "name: b"));
    let notes = read("x.yaml", &both).unwrap().notes;
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].starts_with("ignored 1 pod with spec.schedulingGates"), "{notes:?}");
    let tried = "status: {conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}\n";
    for pod in [pod, &gated] {
        assert_eq!(read("x.yaml", &format!("{pod}{tried}")).unwrap().notes, [""; 0]);
    }
}

#[test]
fn a_pod_as_people_write_it_is_planned_for() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: x}]}\n";
    for status in ["", "status: {}\n", "status: null\n"] {
        let Collected { objects, notes, .. } = read("x.yaml", &format!("{pod}{status}")).unwrap();
        assert!(notes.is_empty() && is_provisionable(&objects.pods[0]), "{status}: {notes:?}");
    }
    let objects = read("x.yaml", &pod.replace("spec: {", "spec: {nodeName: n, ")).unwrap().objects;
    assert!(!is_provisionable(&objects.pods[0]), "it has a node");
}

#[test]
fn a_claim_counts_once_its_vm_is_known() {
    let claim = |more: &str| {
        format!(
            "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata:\n  name: c\n{more}\nspec:\n  requirements: []\n  \
             nodeClassRef: {{group: g, kind: k, name: n}}\n"
        )
    };
    let launched = claim("") + "status: {providerID: proxmox://lab/100}\n";
    let record = r#"{"region":"lab","host":"pve1","vmid":20001,"template":9000,"step":"Clone","attempt":1,"startedAt":1,"lastProgressAt":1}"#;
    let launching = claim(&format!("  annotations: {{tenon.dev/launch: '{record}'}}"));
    for (text, count) in [(claim(""), 0), (launched, 1), (launching, 1)] {
        assert_eq!(read("x.yaml", &text).unwrap().objects.node_claims.len(), count, "{text}");
    }
    let said = read("x.yaml", &claim("  annotations: {tenon.dev/launch: x}")).map(drop).unwrap_err();
    assert!(said.contains("x.yaml:1: NodeClaim c: cannot read annotation tenon.dev/launch"), "{said}");
}

#[test]
fn the_same_object_twice_is_a_fault_that_names_both_locations() {
    let said = read("x.yaml", &format!("{POD}---\n{}---\n{POD}", pod_yaml("b"))).map(drop).unwrap_err();
    assert_eq!(said, "x.yaml:11: duplicate Pod default/a: the first one is at x.yaml:1; remove one");
    let other = POD.replace("name: a", "name: a, namespace: other");
    assert_eq!(pod_names("x.yaml", &format!("{POD}---\n{other}")), ["a", "a"]);
}

#[test]
fn words_and_numbers_mean_what_kubernetes_means() {
    let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {hash: 12e45, off: no}}\n\
                spec:\n  containers:\n  - name: c\n    resources: {requests: {cpu: 0.5, memory: 1e9, pods: 3}}\n";
    let pod = read("x.yaml", text).unwrap().objects.pods.remove(0);
    let labels = pod.labels().clone();
    assert_eq!((labels["hash"].as_str(), labels["off"].as_str()), ("12e45", "no"));
    let requests = pod.spec.as_ref().unwrap().containers[0].resources.clone().unwrap().requests.unwrap();
    assert_eq!((requests["cpu"].0.as_str(), requests["memory"].0.as_str()), ("0.5", "1000000000"));
}

#[test]
fn a_bomb_of_references_is_refused_in_time() {
    let levels: String =
        (1..9).map(|n| format!("l{n}: &l{n} [{}]\n", vec![format!("*l{}", n - 1); 10].join(","))).collect();
    let said = read("x.yaml", &format!("l0: &l0 [a,a,a,a,a,a,a,a,a,a]\n{levels}apiVersion: v1\nkind: Pod\n"))
        .map(drop)
        .unwrap_err();
    assert!(said.starts_with("x.yaml:"), "{said}");
}

#[test]
fn many_objects_are_read_by_many_threads_and_the_first_fault_is_the_first() {
    let mut text: String = (0..4_000).map(|index| format!("{}---\n", pod_yaml(&format!("p{index:04}")))).collect();
    assert_eq!(pod_names("x.yaml", &text).len(), 4_000);
    text.push_str("apiVersion: v1\nkind: Pod\nmetadata: 3\n---\napiVersion: v1\nkind: Pod\nmetadata: 4\n");
    assert!(read("x.yaml", &text).map(drop).unwrap_err().starts_with("x.yaml:20003: "));
}

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    plan: Plan,
}

struct Run {
    folder: tempfile::TempDir,
}

impl Run {
    fn new(files: &[(&str, &str)]) -> Run {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Run { folder }
    }

    /// Runs with arguments in which `@` is the folder.
    fn gather(&self, args: &[&str], stdin: &mut dyn Read) -> Result<(Input, String), String> {
        let place = self.folder.path().to_str().unwrap();
        let line = ["plan".to_owned()].into_iter().chain(args.iter().map(|arg| arg.replace('@', place)));
        let matches = Line::command().try_get_matches_from(line).map_err(|error| error.to_string())?;
        let line = Line::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        let mut notes = Vec::new();
        let input = gather(&line.plan, stdin, &mut notes).map_err(|error| format!("{error:#}").replace(place, "@"))?;
        Ok((input, String::from_utf8(notes).unwrap()))
    }

    fn fault(&self, args: &[&str]) -> String {
        self.gather(args, &mut io::empty()).map(|(input, _)| input.objects.pods.len()).unwrap_err()
    }
}

#[test]
fn a_folder_is_read_without_its_subfolders_and_without_the_files_of_other_flags() {
    let run = Run::new(&[
        ("a.yaml", POD),
        ("b.json", &pod_json("b")),
        ("c.YML", &pod_yaml("c")),
        ("types.json", TYPES),
        ("options.yaml", "cpuRequests: 2000\nfeatureGates: {Fly: true}\n"),
        ("README.md", "words: ["),
    ]);
    fs::create_dir(run.folder.path().join("sub.yaml")).unwrap();
    fs::write(run.folder.path().join("sub.yaml/d.yaml"), pod_yaml("d")).unwrap();
    let args =
        ["-f", "@", "-f", "@/a.yaml", "-f", "-", "--instance-types", "@/types.json", "--options", "@/./options.yaml"];
    let (input, notes) = run.gather(&args, &mut pod_yaml("e").as_bytes()).unwrap();
    let names: Vec<_> = input.objects.pods.iter().map(|pod| pod.name().to_owned()).collect();
    assert_eq!(names, ["a", "b", "c", "e"]);
    let Supply::Catalog(catalog) = &input.supply else { panic!("{:?}", input.supply) };
    assert_eq!((catalog.len(), input.options.cpu_requests), (1, 2_000));
    assert!(notes.contains("note: unknown feature gate Fly") && notes.contains("a.yaml is given twice"), "{notes}");
}

#[test]
fn what_is_missing_or_misspelt_on_the_command_line_is_reported_with_the_next_step() {
    let run = Run::new(&[
        ("a.yaml", POD),
        ("types.json", TYPES),
        ("bad.json", "[{\n\"name\":3}]"),
        ("odd.yaml", "cpu: 1\n"),
        ("cloud.yaml", CLOUD),
    ]);
    fs::create_dir(run.folder.path().join("empty")).unwrap();
    fs::write(run.folder.path().join("bytes.yaml"), b"a: 1\n\xff\xfe").unwrap();
    fs::write(run.folder.path().join("nothing.yaml"), "# words\n---\nnull\n").unwrap();
    let types = ["--instance-types", "@/types.json"];
    for (args, words) in [
        (vec![], "required"),
        (vec!["-f", "@/a.yaml", "--cloud-config", "@/cloud.yaml"], "--cloud-config needs a cluster"),
        (vec!["-f", "@/a.yaml", "--instance-types-file", "@/types.json"], "--cloud-config <FILE>"),
        (
            vec!["-f", "@/a.yaml", "--instance-types", "@/bad.json"],
            "cannot use instance types file @/bad.json: line 1: instance type entry 1: name: must be a string",
        ),
        (
            vec!["-f", "@/a.yaml", "--instance-types", "@/none.json"],
            "cannot read instance types file @/none.json: No such file",
        ),
        ([&types[..], &["-f", "@/none.yaml"]].concat(), "cannot read @/none.yaml: No such file"),
        ([&types[..], &["-f", "@/empty"]].concat(), "no object files in directory @/empty"),
        ([&types[..], &["-f", "@/bytes.yaml"]].concat(), "@/bytes.yaml:2: not UTF-8 text"),
        ([&types[..], &["-f", "@/nothing.yaml"]].concat(), "@/nothing.yaml:1: no objects found"),
        ([&types[..], &["-f", "-"]].concat(), "standard input:1: no objects found"),
        (vec!["-f", "@/a.yaml", "--instance-types", "@/bytes.yaml"], "types file @/bytes.yaml: line 2: not UTF-8 text"),
        (
            [&types[..], &["-f", "@/a.yaml", "--options", "@/bytes.yaml"]].concat(),
            "options file @/bytes.yaml: line 2: not UTF-8",
        ),
        ([&types[..], &["-f", "@/a.yaml", "-f", "-", "-f", "-"]].concat(), "standard input can be read only once"),
        ([&types[..], &["-f", "@/a.yaml", "--options", "@/odd.yaml"]].concat(), "@/odd.yaml: line 1: cpu: "),
        ([&types[..], &["-f", "@/a.yaml", "--cloud-config", "x"]].concat(), "cannot be used with"),
        (vec!["-f", "@/a.yaml", "--cloud-config", "@/none"], "cannot read cloud config @/none"),
        ([&types[..], &["--kubeconfig", "@/none"]].concat(), "cannot use kubeconfig @/none"),
        ([&types[..], &["-f", "@/a.yaml", "-o", "xml"]].concat(), "table, json, yaml"),
    ] {
        let said = run.fault(&args);
        assert!(said.contains(words), "{args:?}: {said}");
    }
}

#[test]
fn a_file_that_breaks_off_while_it_is_read_is_an_error() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let run = Run::new(&[("types.json", TYPES)]);
    let said = run.gather(&["-f", "-", "--instance-types", "@/types.json"], &mut Broken).map(|_| ()).unwrap_err();
    assert_eq!(said, "cannot read standard input: the disk is gone");
}

#[test]
fn every_path_has_a_name_in_errors() {
    let path: PathBuf = Path::new("/nowhere/x.yaml").to_owned();
    let sources = super::load::Sources { paths: &[path], ..super::load::Sources::default() };
    let said = super::load::load(&sources, &mut io::empty(), &mut Collector::default()).unwrap_err();
    assert!(format!("{said:#}").starts_with("cannot read /nowhere/x.yaml: "), "{said:#}");
}
