//! Two releases of Proxmox VE: what each says it is, and what only one of them accepts.

use serde_json::{Value, json};
use tenon_sim::{Estate, EstateConfig, HostSpec, PveVersion, TemplateSpec};

use crate::estate::bench::{Form, call, clone, get, run};

async fn estate(version: PveVersion) -> Estate {
    let estate = Estate::new(EstateConfig { version, ..EstateConfig::default() });
    estate.add_template(&TemplateSpec::default()).unwrap();
    assert_eq!(clone(&estate, "2001", &[]).await, "OK");
    estate
}

#[tokio::test(start_paused = true)]
async fn each_release_says_which_it_is() {
    for (version, release) in [(PveVersion::V8_4, "8.4"), (PveVersion::V9_2, "9.2")] {
        let estate = estate(version).await;
        let told = get(&estate, "/version").await.data();
        assert_eq!(told["release"], release);
        let number = told["version"].as_str().unwrap();
        assert!(number.starts_with(&format!("{release}.")), "{number}");
        let status = get(&estate, "/nodes/pve1/status").await.data();
        assert!(status["pveversion"].as_str().unwrap().starts_with(&format!("pve-manager/{number}/")), "{status}");
        assert_eq!((version.to_string(), release.parse()), (release.to_string(), Ok(version)));
    }
    assert_eq!("7.4".parse::<PveVersion>().unwrap_err().to_string(), "`7.4` is not simulated; known: 8.4, 9.2");
}

#[tokio::test(start_paused = true)]
async fn the_older_release_refuses_what_came_later() {
    let (old, new) = (estate(PveVersion::V8_4).await, estate(PveVersion::V9_2).await);
    let cases: [(&str, &str, Form<'_>); 6] = [
        ("PUT", "/nodes/pve1/qemu/2001/config", &[("allow-ksm", "0")]),
        ("PUT", "/nodes/pve1/qemu/2001/config", &[("agent", "1,freeze-fs=0")]),
        ("PUT", "/nodes/pve1/qemu/2001/config", &[("net1", "virtio,bridge=vmbr0,host-tunnel=1")]),
        ("GET", "/nodes/pve1/capabilities/qemu/cpu", &[("arch", "x86_64")]),
        ("POST", "/nodes/pve1/qemu/2001/status/start", &[("with-conntrack-state", "0")]),
        ("POST", "/access/roles", &[("roleid", "agents"), ("privs", "VM.GuestAgent.Audit")]),
    ];
    for (method, path, form) in cases {
        let statuses = (call(&old, method, path, form).await.status, call(&new, method, path, form).await.status);
        assert_eq!(statuses, (400, 200), "{method} {path} {form:?}");
    }
    let drive = [("scsi1", "shared:1,cyls=1,heads=1,secs=1")];
    let path = "/nodes/pve1/qemu/2001/config";
    assert_eq!(
        (call(&old, "PUT", path, &drive).await.status, call(&new, "PUT", path, &drive).await.status),
        (200, 400)
    );
    let monitor = [("roleid", "monitors"), ("privs", "VM.Monitor")];
    let (old, new) =
        (call(&old, "POST", "/access/roles", &monitor).await, call(&new, "POST", "/access/roles", &monitor).await);
    assert_eq!((old.status, new.status), (200, 400));
}

#[tokio::test(start_paused = true)]
async fn guest_agents_are_asked_with_another_privilege() {
    for (version, privilege) in [(PveVersion::V8_4, "VM.Monitor"), (PveVersion::V9_2, "VM.GuestAgent.Audit")] {
        let estate = estate(version).await;
        let held = get(&estate, "/access/permissions?path=/vms/2001").await.data()["/vms/2001"].clone();
        let agent = |name: &&String| *name == "VM.Monitor" || name.starts_with("VM.GuestAgent.");
        let held: Vec<&String> = held.as_object().unwrap().keys().filter(agent).collect();
        assert!(held.iter().any(|name| *name == privilege), "{version}: {held:?}");
        assert_eq!(held.len(), if version == PveVersion::V8_4 { 1 } else { 5 });
        let lines = tenon_sim::schema_lines(version);
        let calls: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let ping = calls.iter().find(|call| call["path"] == "/nodes/{node}/qemu/{vmid}/agent/ping").unwrap();
        assert_eq!(ping["permissions"]["check"][2][0], privilege);
    }
}

#[tokio::test(start_paused = true)]
async fn rows_of_the_older_release_have_less() {
    let (old, new) = (estate(PveVersion::V8_4).await, estate(PveVersion::V9_2).await);
    for (estate, has) in [(&old, false), (&new, true)] {
        assert_eq!(run(estate, "POST", "/nodes/pve1/qemu/2001/status/start", &[]).await, "OK");
        tokio::time::sleep(std::time::Duration::from_secs(11)).await;
        let current = get(estate, "/nodes/pve1/qemu/2001/status/current").await.data();
        assert_eq!((current.get("memhost").is_some(), current.get("pressurecpufull").is_some()), (has, has));
        let rows = get(estate, "/cluster/resources").await.data();
        let rows = rows.as_array().unwrap();
        let kinds = |kind: &str| rows.iter().filter(|row| row["type"] == kind).count();
        assert_eq!((kinds("network"), kinds("sdn")), if has { (3, 0) } else { (0, 3) });
        let vm = rows.iter().find(|row| row["vmid"] == 2001).unwrap();
        assert_eq!(vm.get("memhost").is_some(), has);
    }
}

#[tokio::test(start_paused = true)]
async fn processors_have_a_maker() {
    let intel = HostSpec::new("pve2", 8, 1 << 34).cpu_model("Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz");
    let hosts = vec![HostSpec::new("pve1", 8, 1 << 34), intel];
    let estate = Estate::new(EstateConfig { hosts, ..EstateConfig::default() });
    let cpu = async |host: &str| get(&estate, &format!("/nodes/{host}/status")).await.data()["cpuinfo"].clone();
    let (amd, intel) = (cpu("pve1").await, cpu("pve2").await);
    assert!(amd["model"].as_str().unwrap().contains("AMD") && intel["model"].as_str().unwrap().contains("Intel"));
    assert_eq!((&amd["vendor"], &intel["vendor"]), (&json!("AuthenticAMD"), &json!("GenuineIntel")));
}
