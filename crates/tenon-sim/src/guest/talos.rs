//! What does a Talos worker do with its machine configuration?
//!
//! Talos reads user-data as its own configuration and writes the kubelet's files itself. Of that the simulator does what
//! a worker needs to join. Talos labels and taints a node shortly after it has registered; here both are there at once.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::disk::{Disk, File};
use super::image::kubeconfig;
use super::trouble::first_line;
use super::unit;

const BOOTSTRAP: &str = "/etc/kubernetes/bootstrap-kubeconfig";
const CA: &str = "/etc/kubernetes/pki/ca.crt";
const CONFIG: &str = "/etc/kubernetes/kubelet.yaml";
const KUBECONFIG: &str = "/etc/kubernetes/kubeconfig-kubelet";

/// Flags that Talos sets itself; a configuration that sets one of them is refused.
const OWN_FLAGS: [&str; 3] = ["bootstrap-kubeconfig", "kubeconfig", "config"];

/// Whether the data is a machine configuration: it has no mark, so what every such file has must do.
pub(crate) fn is_machine_config(text: &str) -> bool {
    let has = |is: fn(&str) -> bool| text.lines().any(|line| is(line.trim_end()));
    has(|line| line == "version: v1alpha1") && has(|line| line.starts_with("machine:"))
}

/// Sets up the disk, and tells what there is to tell.
pub(crate) fn apply(text: &str, disk: &mut Disk) -> Vec<String> {
    match set_up(text, disk) {
        Ok(endpoint) => vec![format!("read the machine configuration of a Talos worker for {endpoint}")],
        Err(why) => vec![format!("cannot use the machine configuration of Talos: {why}")],
    }
}

fn set_up(text: &str, disk: &mut Disk) -> Result<String, String> {
    let documents = documents(text)?;
    let config = documents.iter().find(|document| document["machine"].is_object());
    let config = config.ok_or("it has no machine")?;
    let (machine, cluster) = (&config["machine"], &config["cluster"]);
    if machine["type"].as_str().is_some_and(|kind| !["worker", "join"].contains(&kind)) {
        return Err("the simulator plays only workers".into());
    }
    let missing = |field: &str| format!("it has no {field}");
    let endpoint =
        cluster["controlPlane"]["endpoint"].as_str().ok_or_else(|| missing("cluster.controlPlane.endpoint"))?;
    let token = cluster["token"].as_str().ok_or_else(|| missing("cluster.token"))?;
    let ca = cluster["ca"]["crt"].as_str().ok_or_else(|| missing("cluster.ca.crt"))?;
    let ca = STANDARD.decode(ca).ok().and_then(|ca| String::from_utf8(ca).ok());
    let ca = ca.ok_or("cluster.ca.crt is not base64 of a certificate")?;
    let named = documents.iter().find(|document| document["kind"] == "HostnameConfig");
    let name = machine["network"]["hostname"].as_str().or_else(|| named?["hostname"].as_str());
    if let Some(name) = name {
        disk.hostname = name.to_owned();
    }
    let flags = flags(machine, cluster, &disk.hostname)?;
    disk.write(BOOTSTRAP, File::secret(kubeconfig(endpoint, &ca, &json!({ "token": token }))));
    disk.write(CA, File::public(ca));
    disk.write(CONFIG, File::public(kubelet_config(machine)?.to_string()));
    unit::install(disk, &flags);
    Ok(endpoint.to_owned())
}

/// A machine configuration may be followed by documents of other kinds.
fn documents(text: &str) -> Result<Vec<Value>, String> {
    let mut texts = vec![String::new()];
    for line in text.lines() {
        match texts.last_mut() {
            Some(last) if line.trim_end() != "---" => last.extend([line, "\n"]),
            _ => texts.push(String::new()),
        }
    }
    let is_something =
        |text: &&String| text.lines().any(|line| !line.trim_start().starts_with('#') && !line.trim().is_empty());
    let parse = |text: &String| serde_saphyr::from_str(text).map_err(|error| first_line(&error.to_string()));
    texts.iter().filter(is_something).map(parse).collect()
}

/// What Talos sets, with the user's `extraConfig` over it.
fn kubelet_config(machine: &Value) -> Result<Value, String> {
    let mut config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": { "x509": { "clientCAFile": CA } },
    });
    let taints =
        entries(&machine["nodeTaints"]).map(|(key, taint)| taint_of(key, taint)).collect::<Result<Vec<_>, _>>()?;
    if !taints.is_empty() {
        config["registerWithTaints"] = Value::Array(taints);
    }
    if let (Value::Object(config), Value::Object(extra)) = (&mut config, &machine["kubelet"]["extraConfig"]) {
        config.extend(extra.clone());
    }
    Ok(config)
}

/// `value:Effect` or `:Effect`.
fn taint_of(key: &str, taint: &Value) -> Result<Value, String> {
    let (value, effect) =
        taint.as_str().and_then(|text| text.rsplit_once(':')).ok_or(format!("taint {key} has no effect"))?;
    let mut taint = json!({ "key": key, "effect": effect });
    if !value.is_empty() {
        taint["value"] = json!(value);
    }
    Ok(taint)
}

fn flags(machine: &Value, cluster: &Value, hostname: &str) -> Result<Vec<String>, String> {
    let mut flags = vec![format!("--hostname-override={hostname}")];
    let labels: Vec<String> =
        entries(&machine["nodeLabels"]).map(|(key, value)| format!("{key}={}", plain(value))).collect();
    if !labels.is_empty() {
        flags.push(format!("--node-labels={}", labels.join(",")));
    }
    if cluster["externalCloudProvider"]["enabled"] == true {
        flags.push("--cloud-provider=external".to_owned());
    }
    for (name, value) in entries(&machine["kubelet"]["extraArgs"]) {
        if OWN_FLAGS.contains(&name.as_str()) {
            return Err(format!("Talos does not let machine.kubelet.extraArgs set {name}"));
        }
        let values = value.as_array().map_or_else(|| vec![plain(value)], |values| values.iter().map(plain).collect());
        flags.extend(values.into_iter().map(|value| format!("--{name}={value}")));
    }
    flags.extend([
        format!("--bootstrap-kubeconfig={BOOTSTRAP}"),
        format!("--kubeconfig={KUBECONFIG}"),
        format!("--config={CONFIG}"),
    ]);
    Ok(flags)
}

fn entries(map: &Value) -> impl Iterator<Item = (&String, &Value)> {
    map.as_object().into_iter().flat_map(Map::iter)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;
