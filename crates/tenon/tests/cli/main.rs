//! The command line as a person meets it: what it prints, and how it ends.

mod render;

use std::fs::File;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

fn tenon(args: &[&str]) -> io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_tenon")).args(args).output()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn version_prints_one_line() -> io::Result<()> {
    let output = tenon(&["version"])?;
    assert!(output.status.success());
    let text = stdout(&output);
    assert!(text.starts_with(&format!("tenon {}", env!("CARGO_PKG_VERSION"))), "{text}");
    assert!(text.ends_with(", with simulator\n"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    Ok(())
}

#[test]
fn version_as_json_is_one_object() -> io::Result<()> {
    let output = tenon(&["version", "-o", "json"])?;
    let value: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(value["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!((&value["os"], &value["simulator"]), (&std::env::consts::OS.into(), &true.into()), "{value}");
    Ok(())
}

#[test]
fn help_names_every_verb_a_person_may_use() -> io::Result<()> {
    let output = tenon(&["--help"])?;
    assert!(output.status.success());
    let text = stdout(&output);
    for verb in [
        "controller",
        "demo",
        "plan",
        "instance-types",
        "render",
        "template",
        "crds",
        "version",
        "completions",
        "pve-sim",
    ] {
        assert!(text.contains(verb), "{text}");
    }
    Ok(())
}

#[test]
fn a_wrong_command_line_ends_with_2_and_the_right_one() -> io::Result<()> {
    for args in [&["versions"][..], &["version", "--format", "json"], &["version", "-o", "yaml"], &["completions"], &[]]
    {
        let output = tenon(args)?;
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains("--help"), "{args:?}: {}", stderr(&output));
    }
    Ok(())
}

#[test]
fn completions_are_a_script_bash_understands() -> io::Result<()> {
    let output = tenon(&["completions", "bash"])?;
    assert!(output.status.success());
    let path = std::env::temp_dir().join(format!("tenon-completions-{}.bash", std::process::id()));
    std::fs::write(&path, &output.stdout)?;
    let syntax = Command::new("bash").arg("-n").arg(&path).output();
    std::fs::remove_file(&path)?;
    assert!(syntax?.status.success());
    assert!(stdout(&output).contains("completions"));
    Ok(())
}

#[test]
fn pve_sim_answers_over_https_and_ends_when_told() -> io::Result<()> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(["pve-sim", "--listen", "127.0.0.1:0", "--hosts", "2"])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut first = String::new();
    io::BufRead::read_line(&mut io::BufReader::new(child.stdout.take().expect("it was piped")), &mut first)?;
    let address = first.trim().strip_prefix("simulated Proxmox VE at https://").and_then(|rest| rest.split('/').next());
    let address = address.unwrap_or_else(|| panic!("no address in `{first}`")).to_owned();
    // A connection is accepted; what is said over it is the simulator's own tests' concern.
    let connected = TcpStream::connect(&address);
    let told = Command::new("kill").arg(child.id().to_string()).status()?;
    let status = child.wait()?;
    assert!(connected.is_ok() && told.success() && status.success(), "{connected:?} {status:?}");
    Ok(())
}

#[test]
fn pve_sim_refuses_what_it_cannot_make() -> io::Result<()> {
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    let output = tenon(&["pve-sim", "--listen", &address])?;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with(&format!("error: cannot listen on {address}: ")), "{}", stderr(&output));
    let output = tenon(&["pve-sim", "--hosts", "0"])?;
    assert!(stderr(&output).contains("give --hosts a number from 1 to 64"), "{}", stderr(&output));
    let output = tenon(&["pve-sim", "--storages", "fast:nvme"])?;
    assert!(stderr(&output).contains("with KIND dir, shared, thin or lvm"), "{}", stderr(&output));
    Ok(())
}

#[test]
fn pve_sim_says_what_is_wrong_with_a_fault_file() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("faults.yaml");
    let shown = file.display().to_string();
    let cases = [
        (
            "rules: [{ name: a, effect: explode }]",
            "rules[0] (a): field `effect` cannot be `explode`; allowed: refuse, ",
        ),
        ("rules: [{ host: pve9, effect: cut-body }]", "rules[0]: host `pve9` does not exist; known: pve1, pve2, pve3"),
        ("guests: [{ fault: hangs }]", "it has faults of guests, but no guests are simulated; add --guest-api"),
    ];
    for (text, told) in cases {
        std::fs::write(&file, text)?;
        let output = tenon(&["pve-sim", "--listen", "127.0.0.1:0", "--faults", &shown])?;
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).starts_with(&format!("error: cannot use {shown}: {told}")), "{}", stderr(&output));
    }
    Ok(())
}

#[test]
fn pve_sim_tells_which_calls_it_answers() -> io::Result<()> {
    let output = tenon(&["pve-sim", "--schema"])?;
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let calls = text.lines().map(serde_json::from_str::<serde_json::Value>).collect::<Result<Vec<_>, _>>()?;
    let resize = calls.iter().find(|call| call["path"] == "/nodes/{node}/qemu/{vmid}/resize");
    assert_eq!(
        resize.map(|call| &call["params"]["size"]["pattern"]),
        Some(&serde_json::json!(r"\+?\d+(\.\d+)?[KMGT]?"))
    );
    Ok(())
}

#[test]
fn the_demo_places_its_pods_and_leaves_nothing_behind() -> io::Result<()> {
    let output = tenon(&["demo", "--speed", "0", "--pods", "7", "-o", "json"])?;
    assert!(output.status.success(), "{}", stderr(&output));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!((&told["podsPlaced"], &told["leftovers"]), (&serde_json::json!(7), &serde_json::json!(0)), "{told}");
    assert_eq!((&told["vmsMade"], told["vmsMade"].as_u64() > Some(0)), (&told["vmsDestroyed"], true), "{told}");
    let lines = tenon(&["demo", "--headless", "--speed", "0", "--hosts", "1", "--pods", "1"])?;
    let text = stdout(&lines);
    for words in ["1 pod is pending", "node initialized, ready for pods", "1 pod is running", "left behind         0"] {
        assert!(text.contains(words), "{text}");
    }
    Ok(())
}

#[test]
fn a_demo_that_cannot_be_played_says_why() -> io::Result<()> {
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    for (args, words) in [
        (&["demo", "--hosts", "0"][..], "give --hosts a number from 1 to 16"),
        (&["demo", "--pods", "9999"], "give --pods a number from 1 to 500"),
        (&["demo", "--keep", "--kubernetes-listen", &address], "choose another address with --kubernetes-listen"),
        (&["demo", "--keep", "--proxmox-listen", &address], "choose another address with --proxmox-listen"),
    ] {
        let output = tenon(args)?;
        assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(1), 1), "{args:?}");
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    let nowhere =
        Command::new(env!("CARGO_BIN_EXE_tenon")).args(["demo", "--keep"]).env("TMPDIR", "/proc/1").output()?;
    assert!(stderr(&nowhere).contains("set TMPDIR to a writable directory"), "{}", stderr(&nowhere));
    Ok(())
}

#[test]
fn instance_types_that_are_generated_can_be_listed() -> io::Result<()> {
    let generated = tenon(&["instance-types", "g", "-c", "2,6", "-m", "5", "-s", "50", "--kubelet"])?;
    assert!(generated.status.success(), "{}", stderr(&generated));
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("types.json");
    std::fs::write(&path, &generated.stdout)?;
    let listed = tenon(&["instance-types", "list", "--instance-types-file", &path.display().to_string()])?;
    let text = stdout(&listed);
    assert!(text.starts_with("NAME ") && text.contains("e1.6VCPU-30GB") && text.contains("5900m"), "{text}");
    let wrong = tenon(&["instance-types", "generate", "-c", "2,six"])?;
    assert_eq!((wrong.status.code(), stdout(&wrong).as_str()), (Some(2), ""));
    assert!(stderr(&wrong).contains("`six` is not a whole number from 1 to 4096"), "{}", stderr(&wrong));
    Ok(())
}

#[test]
fn output_that_cannot_be_written_is_an_error_on_one_line() -> io::Result<()> {
    let full = File::options().write(true).open("/dev/full")?;
    let output = Command::new(env!("CARGO_BIN_EXE_tenon")).arg("version").stdout(full).output()?;
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.starts_with("error: cannot print the version: "), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    Ok(())
}

#[test]
fn a_reader_that_has_seen_enough_is_not_an_error() -> io::Result<()> {
    let (reader, writer) = io::pipe()?;
    drop(reader);
    let child = Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(["completions", "zsh"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()?;
    let output = child.wait_with_output()?;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    Ok(())
}

const CLOUD: &str = "clusters:\n- {region: lab, url: 'https://127.0.0.1:1', insecure: true, token_id: a@b!c, \
                     token_secret: s3cret, colour: red}\n";

const KUBECONFIG: &str = "current-context: x\n\
    clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true}}]\n\
    users: [{name: u, user: {token: s3cret}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n";

/// The controller with what the test gives and nothing else: the variables of whoever runs the test are flags too.
fn controller(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
    command.env_clear().arg("controller").args(args);
    command
}

/// A file of its own that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> io::Result<Scratch> {
        let path = std::env::temp_dir().join(format!("tenon-cli-{}-{name}", std::process::id()));
        std::fs::write(&path, text)?;
        Ok(Scratch(path))
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("it is text")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_controller_that_was_told_wrong_says_what_is_wrong() -> io::Result<()> {
    let at = ["--cloud-config", "/nowhere"];
    for (args, code, words) in [
        (&[][..], 2, "--cloud-config <FILE>"),
        (&["--cloud-config="], 1, "no cloud config is given; give its path with --cloud-config"),
        (&at, 1, "error: cannot read cloud config /nowhere: No such file or directory"),
        (
            &[at[0], at[1], "--batch-max-duration", "10"],
            2,
            "the unit is missing; give a duration such as 1s, 500ms or 1m30s",
        ),
        (&[at[0], at[1], "--log-level", "loud"], 2, "[possible values: error, warn, info, debug, trace]"),
        (&[at[0], at[1], "--metrics-port", "65536"], 2, "--metrics-port <PORT>"),
        (&[at[0], at[1], "--proxmox-vmid", "30000"], 1, "the VM ID range 30000 to 29999 is empty"),
        (&[at[0], at[1], "--cluster-endpoint", "https://a:s3cret@b"], 2, "give https://host or https://host:port"),
        (&[at[0], at[1], "-disable-leader-election=1"], 2, "[possible values: true, false]"),
        (&[at[0], at[1], "-renew-deadline", "15s"], 1, "error: cannot use --lease-duration, --renew-deadline and"),
        (&[at[0], at[1], "--instance-types-file", "/none"], 1, "cannot read instance types file /none: No such file"),
    ] {
        let output = controller(args).output()?;
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(words) && !said.contains("s3cret") && stdout(&output).is_empty(), "{args:?}: {said}");
        assert!(code == 2 || said.lines().count() == 1, "{args:?}: {said}");
    }
    Ok(())
}

#[test]
fn a_flag_with_one_dash_and_a_variable_mean_the_same() -> io::Result<()> {
    let expected = stderr(&controller(&["--cloud-config", "/nowhere"]).output()?);
    assert!(expected.trim_end().ends_with("; check the path given with --cloud-config"), "{expected}");
    for args in [
        &["-cloud-config", "/nowhere"][..],
        &["-cloud-config=/nowhere", "-metrics-port", "0"],
        &["-disable-leader-election", "-cloud-config", "/nowhere"],
        // What a chart appends for its user comes last, and counts.
        &[
            "-cloud-config=/elsewhere",
            "-enable-profiling",
            "-log-level=info",
            "-log-level=error",
            "-cloud-config=/nowhere",
        ],
        &["-disable-leader-election=true", "-leader-election-name", "a", "-cloud-config", "/nowhere"],
    ] {
        assert_eq!(stderr(&controller(args).output()?), expected, "{args:?}");
    }
    assert_eq!(stderr(&controller(&[]).env("CLOUD_CONFIG", "/nowhere").output()?), expected);
    let flag_wins = controller(&["-cloud-config", "/nowhere"]).env("CLOUD_CONFIG", "/elsewhere").output()?;
    assert_eq!(stderr(&flag_wins), expected);
    let unclear = controller(&["-cloud-config", "/nowhere"]).env("DISABLE_LEADER_ELECTION", "yes").output()?;
    assert_eq!(unclear.status.code(), Some(2), "{}", stderr(&unclear));
    Ok(())
}

#[test]
fn a_malformed_file_is_named_and_not_quoted() -> io::Result<()> {
    let cloud = Scratch::new("cloud-malformed", "clusters:\n- token_secret: s3cret: x\n")?;
    let said = stderr(&controller(&["--cloud-config", cloud.path()]).output()?);
    let start = format!("error: cannot use cloud config {}: not a valid cloud config: ", cloud.path());
    assert!(said.starts_with(&start) && said.contains("line 2, column 23") && !said.contains("s3cret"), "{said}");
    let (cloud, kube) = (Scratch::new("cloud-good", CLOUD)?, Scratch::new("kube-malformed", "users: [{token: s3cret")?);
    let said = stderr(&controller(&["--cloud-config", cloud.path(), "--kubeconfig", kube.path()]).output()?);
    assert!(said.starts_with(&format!("error: cannot use kubeconfig {}: ", kube.path())), "{said}");
    assert!(!said.contains("s3cret") && said.lines().count() == 1, "{said}");
    Ok(())
}

#[test]
fn a_port_that_is_taken_is_named_with_its_flag() -> io::Result<()> {
    let (cloud, kube) = (Scratch::new("cloud-port", CLOUD)?, Scratch::new("kube-port", KUBECONFIG)?);
    let taken = TcpListener::bind("0.0.0.0:0")?;
    let port = taken.local_addr()?.port().to_string();
    for (flag, other) in [("-metrics-port", "-health-probe-port"), ("-health-probe-port", "-metrics-port")] {
        let args = ["-cloud-config", cloud.path(), "-kubeconfig", kube.path(), flag, &port, other, "0"];
        let output = controller(&args).output()?;
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with(&format!("error: cannot listen on port {port}: Address already in use")), "{said}");
        assert!(said.trim_end().ends_with(&format!("; give another port with -{flag}")), "{said}");
    }
    Ok(())
}

const POOL: &str = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: p}\nspec:\n  template:\n    spec:\n      \
                    requirements: []\n      nodeClassRef: {group: g, kind: k, name: n}\n";
const POD: &str = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: c\n    resources: \
                   {requests: {cpu: 1}}\nstatus: {conditions: [{type: PodScheduled, status: 'False', reason: \
                   Unschedulable}]}\n";
const TYPES: &str = r#"[{"name":"m4","capacity":{"cpu":"4","memory":"16Gi","pods":"30"}}]"#;

/// A plan from a file, with the objects on standard input.
fn plan(objects: &str, args: &[&str]) -> io::Result<Output> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(["plan", "-f", "-"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().expect("it was piped").write_all(objects.as_bytes())?;
    child.wait_with_output()
}

#[test]
fn a_plan_goes_to_standard_output_and_what_was_left_out_to_standard_error() -> io::Result<()> {
    let types = Scratch::new("plan-types", TYPES)?;
    let objects = format!("{POOL}{POD}---\napiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\n");
    let json = || plan(&objects, &["--instance-types", types.path(), "-o", "json"]);
    let output = json()?;
    let mut told: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!((output.status.code(), told["newNodeClaims"][0]["pods"][0].as_str()), (Some(0), Some("default/a")));
    assert_eq!(stderr(&output), "note: ignored 1 Secret of v1: this kind does not affect a plan\n");
    let mut again: serde_json::Value = serde_json::from_slice(&json()?.stdout)?;
    for plan in [&mut told, &mut again] {
        for micros in ["solveMicros", "buildMicros", "loadMicros"] {
            assert!(plan["stats"][micros].take().is_u64(), "{plan}");
        }
    }
    assert_eq!(told.to_string(), again.to_string());
    let table = plan(&objects.replace("cpu: 1", "cpu: 64"), &["--instance-types", types.path()])?;
    assert_eq!(table.status.code(), Some(0), "a pod that stays pending is no error");
    let text = stdout(&table);
    assert!(text.contains("Unschedulable: 1 pod\n\n  default/a\n      NodePool p: no instance type has"), "{text}");
    Ok(())
}

#[test]
fn a_plan_that_cannot_be_made_prints_nothing_but_why() -> io::Result<()> {
    let types = Scratch::new("plan-types-2", TYPES)?;
    let (cloud, kube) = (Scratch::new("plan-cloud", CLOUD)?, Scratch::new("plan-kube", KUBECONFIG)?);
    let types = ["--instance-types", types.path()];
    for (objects, args, words) in [
        ("", &types[..], "standard input:1: no objects found; give a file with Kubernetes objects"),
        (POD, &["--cloud-config", cloud.path()], "--cloud-config needs a cluster"),
        (
            POD,
            &["--kubeconfig", kube.path()],
            "; check that the API server named in the file given with --kubeconfig is",
        ),
        (&POD.replace("cpu: 1", "cpu: -1"), &types, "standard input:8: Pod a: spec.containers[0].resources"),
        (&POD[..POD.len() / 2], &types, "standard input:"),
    ] {
        let output = plan(objects, args)?;
        let said = stderr(&output);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{said}");
        assert!(said.starts_with("error: ") && said.contains(words) && said.lines().count() == 1, "{said}");
    }
    Ok(())
}

#[test]
fn a_manifest_is_planned_with_the_built_in_instance_types() -> io::Result<()> {
    let deployment = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 3\n  selector: {}\n  \
                      template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}\n";
    let objects = format!("{POOL}{deployment}");
    let table = plan(&objects, &[])?;
    let (text, notes) = (stdout(&table), stderr(&table));
    assert!(
        table.status.success() && notes.starts_with("note: --instance-types is not given: using the built-in"),
        "{notes}"
    );
    assert!(text.starts_with("planned 3 pods of Deployment default/web\n\nNew nodes: 1\n"), "{text}");
    assert!(text.contains("default/web-1 … web-3 (3 pods)") && text.contains("c1.4VCPU-8GB"), "{text}");
    assert!(text.contains("\n3 pods: 3 on 1 new node, 0 on existing nodes, 0 unschedulable\n"), "{text}");
    let json = plan(&objects, &["-o", "json"])?;
    let value: serde_json::Value = serde_json::from_slice(&json.stdout)?;
    assert_eq!(
        value["newNodeClaims"][0]["pods"],
        serde_json::json!(["default/web-1", "default/web-2", "default/web-3"])
    );
    assert!(stderr(&json).contains("note: planned 3 pods of Deployment default/web\n"), "{}", stderr(&json));
    let huge = plan(&objects.replace("replicas: 3", "replicas: 2147483647"), &[])?;
    let said = stderr(&huge);
    assert!(said.contains("Deployment web: spec.replicas: 2147483647 pods are too many"), "{said}");
    assert_eq!((huge.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    Ok(())
}

#[test]
fn what_pods_only_prefer_does_not_matter_where_preferences_are_ignored() -> io::Result<()> {
    let options = Scratch::new("plan-options", "preferencePolicy: Ignore\n")?;
    let term = "{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: x}}}";
    let wishes = format!(
        "spec:\n  affinity: {{podAffinity: {{preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 1, podAffinityTerm: \
         {term}}}]}}}}\n  topologySpreadConstraints: [{{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: \
         ScheduleAnyway}}]"
    );
    let prefers = POD.replace("{name: a}", "{name: prefers}").replace("spec:", &wishes);
    let output = plan(&format!("{POOL}{POD}{prefers}"), &["--options", options.path()])?;
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(text.contains("\n2 pods: 2 on 1 new node, 0 on existing nodes, 0 unschedulable\n"), "{text}");
    assert!(!stderr(&output).contains("bug"), "{}", stderr(&output));
    Ok(())
}

/// Ends with the test, also with one that fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn get(address: &serde_json::Value, path: &str) -> io::Result<String> {
    let port = address.as_str().and_then(|address| address.rsplit(':').next()).unwrap_or_default();
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}"))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: tenon\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn a_controller_answers_on_its_ports_and_ends_when_told() -> io::Result<()> {
    for signal in ["-TERM", "-INT"] {
        let cloud = Scratch::new(&format!("cloud{signal}"), CLOUD)?;
        let kube = Scratch::new(&format!("kube{signal}"), KUBECONFIG)?;
        let args = ["-cloud-config", cloud.path(), "-kubeconfig", kube.path(), "-log-level", "trace"];
        let mut command = controller(&args);
        let is_alone = signal == "-INT";
        command.envs([("METRICS_PORT", "0"), ("HEALTH_PROBE_PORT", "0")]).stdout(Stdio::piped());
        command.env("DISABLE_LEADER_ELECTION", is_alone.to_string());
        let mut child = Running(command.spawn()?);
        let mut lines = io::BufReader::new(child.0.stdout.take().expect("it was piped")).lines();
        let mut log: Vec<serde_json::Value> = Vec::new();
        while log.last().is_none_or(|line| line["message"] != "serving health") {
            log.push(serde_json::from_str(&lines.next().expect("it has not begun yet")?)?);
        }
        assert_eq!((&log[0]["regions"], &log[0]["vm_ids"]), (&"lab".into(), &"20000-29999".into()), "{log:?}");
        assert_eq!(log[0]["version"], env!("CARGO_PKG_VERSION"));
        assert!(log[1]["level"] == "WARN" && log[1]["message"].to_string().contains("unknown key `colour`"), "{log:?}");
        let metrics = get(&log[log.len() - 2]["address"], "/metrics")?;
        assert!(metrics.contains("content-type: text/plain; version=0.0.4; charset=utf-8"));
        assert!(metrics.starts_with("HTTP/1.1 200") && metrics.contains("karpenter_build_info{"), "{metrics}");
        let health = &log[log.len() - 1]["address"];
        let (healthy, ready) = (get(health, "/healthz")?, get(health, "/readyz")?);
        assert!(healthy.starts_with("HTTP/1.1 200") && healthy.ends_with("\r\n\r\nok"), "{healthy}");
        assert!(ready.starts_with("HTTP/1.1 503") && ready.ends_with("caches are not synced yet"), "{ready}");
        assert!(Command::new("kill").args([signal, &child.0.id().to_string()]).status()?.success());
        let rest = lines.collect::<Result<Vec<_>, _>>()?.join("\n");
        assert!(child.0.wait()?.success(), "{rest}");
        assert_eq!(rest.contains("starting leader election"), !is_alone, "{rest}");
        assert!(!format!("{log:?}{rest}").contains("s3cret") && rest.contains("\"message\":\"stopped\""), "{rest}");
    }
    Ok(())
}
