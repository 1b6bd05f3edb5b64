//! What the guest agent answers, when there is one: names, addresses, and the few commands a guest here knows.

use std::time::Duration;

use serde_json::{Value, json};

use crate::params::Call;
use crate::property::{NetDev, parts};
use crate::state::State;
use crate::vm::{Command, Vm};
use crate::wire::{Answer, Halt, Refusal, Reply, Shape};

/// How long PVE waits for an agent that does not answer.
const SILENCE: Duration = Duration::from_secs(3);
/// How long it takes until a command that can not be run breaks the connection.
const BREAKS: Duration = Duration::from_secs(5);
/// Where cloud-init keeps what the first boot printed.
const BOOT_LOG: &str = "/var/log/cloud-init-output.log";
/// The first process a guest gives to a caller.
const FIRST_PID: u32 = 600;

/// The VM, if an agent answers inside it.
fn answering<'a>(state: &'a State, call: &Call) -> Result<&'a Vm, Refusal> {
    let vm = state.vm_on(call.node(), call.vmid())?;
    if vm.running.is_none() && !vm.has_agent() {
        return Err(Refusal::failed("No QEMU guest agent configured"));
    }
    let Some(running) = &vm.running else {
        return Err(Refusal::failed(format!("VM {} is not running", vm.vmid)));
    };
    let silent = Refusal::failed("QEMU guest agent is not running");
    if !vm.has_agent() {
        return Err(silent);
    }
    let up = state.now.saturating_sub(running.since) >= state.config.pace.agent;
    if up && !running.paused && !running.hung && state.has_system(vm.vmid) {
        Ok(vm)
    } else {
        Err(silent.after(SILENCE))
    }
}

fn result(value: &Value) -> Answer {
    Ok(Reply::data(json!({ "result": value })))
}

pub(crate) fn ping(state: &mut State, call: &Call) -> Answer {
    answering(state, call)?;
    result(&json!({}))
}

pub(crate) fn host_name(state: &mut State, call: &Call) -> Answer {
    let vm = answering(state, call)?;
    result(&json!({ "host-name": vm.name() }))
}

pub(crate) fn os_info(state: &mut State, call: &Call) -> Answer {
    answering(state, call)?;
    result(&json!({
        "id": "debian", "name": "Debian GNU/Linux", "pretty-name": "Debian GNU/Linux 13 (trixie)", "version": "13 (trixie)",
        "version-id": "13", "machine": "x86_64", "kernel-release": "6.12.107+deb13-cloud-amd64",
        "kernel-version": "#1 SMP PREEMPT_DYNAMIC Debian 6.12.107-1 (2026-08-29)",
    }))
}

pub(crate) fn time(state: &mut State, call: &Call) -> Answer {
    answering(state, call)?;
    result(&(state.epoch() * 1_000_000_000).into())
}

pub(crate) fn interfaces(state: &mut State, call: &Call) -> Answer {
    let vm = answering(state, call)?;
    let loopback = [
        json!({ "ip-address": "127.0.0.1", "ip-address-type": "ipv4", "prefix": 8 }),
        json!({ "ip-address": "::1", "ip-address-type": "ipv6", "prefix": 128 }),
    ];
    let mut rows = vec![interface("lo", "00:00:00:00:00:00", &loopback)];
    for n in 0..32 {
        let Some(net) = vm.get(&format!("net{n}")).map(NetDev::read) else { continue };
        let mac = net.mac.unwrap_or_default().to_ascii_lowercase();
        let addresses = addresses(vm, n, &mac);
        rows.push(interface(&format!("eth{n}"), &mac, &addresses));
    }
    result(&rows.into())
}

fn interface(name: &str, mac: &str, addresses: &[Value]) -> Value {
    let counts = ["rx-bytes", "rx-dropped", "rx-errs", "rx-packets", "tx-bytes", "tx-dropped", "tx-errs", "tx-packets"];
    let counts: serde_json::Map<String, Value> = counts.iter().map(|key| (key.to_string(), 0.into())).collect();
    json!({ "name": name, "hardware-address": mac, "ip-addresses": addresses, "statistics": counts })
}

/// What is configured, or what a DHCP server would have given, and the address every link has.
fn addresses(vm: &Vm, n: u32, mac: &str) -> Vec<Value> {
    let config = vm.get(&format!("ipconfig{n}")).unwrap_or("ip=dhcp").to_string();
    let mut rows = Vec::new();
    for (key, value) in parts(&config, "ip") {
        let kind = if key == "ip6" { "ipv6" } else { "ipv4" };
        let given = match (key, value) {
            ("ip", "dhcp") => Some(format!("{}/9", leased(vm.vmid))),
            ("ip" | "ip6", _) => Some(value.to_string()).filter(|value| value.contains('/')),
            _ => None,
        };
        let parsed = given
            .as_deref()
            .and_then(|given| given.split_once('/'))
            .and_then(|(a, p)| Some((a, p.parse::<u8>().ok()?)));
        if let Some((address, prefix)) = parsed {
            rows.push(json!({ "ip-address": address, "ip-address-type": kind, "prefix": prefix }));
        }
    }
    rows.push(json!({ "ip-address": link_local(mac), "ip-address-type": "ipv6", "prefix": 64 }));
    rows
}

/// What a DHCP server would give a VM: the same for the same id. The upper half of 10.0.0.0/8 belongs to pods.
fn leased(vmid: u32) -> String {
    let [_, b, c, d] = vmid.to_be_bytes();
    format!("10.{}.{c}.{d}", b & 0x7f)
}

/// The IPv4 address of a VM's first card: the one it is configured with, or what a DHCP server would give.
pub(crate) fn first_address(vm: &Vm) -> String {
    let config = vm.get("ipconfig0").unwrap_or_default().to_string();
    let fixed = parts(&config, "ip").into_iter().find(|(key, value)| *key == "ip" && value.contains('/'));
    fixed.and_then(|(_, value)| value.split('/').next().map(str::to_owned)).unwrap_or_else(|| leased(vm.vmid))
}

/// The IPv6 address that follows from a MAC address.
fn link_local(mac: &str) -> String {
    let bytes: Vec<u16> = mac.split(':').filter_map(|byte| u16::from_str_radix(byte, 16).ok()).collect();
    let at = |n: usize| bytes.get(n).copied().unwrap_or(0);
    let words = [(at(0) ^ 2) << 8 | at(1), at(2) << 8 | 0xff, 0xfe00 | at(3), at(4) << 8 | at(5)];
    std::net::Ipv6Addr::new(0xfe80, 0, 0, 0, words[0], words[1], words[2], words[3]).to_string()
}

/// The one file a guest here has: what it told while it booted.
pub(crate) fn file_read(state: &mut State, call: &Call) -> Answer {
    let vmid = answering(state, call)?.vmid;
    let file = call.word("file");
    if file != BOOT_LOG {
        let told = format!("Agent error: failed to open file '{file}' (mode: 'r'): No such file or directory");
        return Err(Refusal::failed(told).into());
    }
    let lines = state.journal.as_ref().map(|journal| journal.log(vmid)).unwrap_or_default();
    let content: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Ok(Reply::data(json!({ "bytes-read": content.len(), "content": content })))
}

pub(crate) fn exec(state: &mut State, call: &Call) -> Answer {
    let name = answering(state, call)?.name();
    let words: Vec<&str> = call.word("command").split('\0').collect();
    let Some(command) = run(&words, &name) else {
        // The agent's answer to a missing program never arrives.
        return Err(Halt::Refused(Refusal::new(596, "Broken pipe", Shape::Empty).after(BREAKS)));
    };
    let running = state.vms.get_mut(&call.vmid()).and_then(|vm| vm.running.as_mut());
    let commands = running.map(|running| &mut running.commands);
    let pid = commands.as_ref().and_then(|all| all.keys().last().copied()).unwrap_or(FIRST_PID) + 1;
    if let Some(commands) = commands {
        commands.insert(pid, command);
    }
    Ok(Reply::data(json!({ "pid": pid })))
}

/// First "still running", then the outcome, once; after that the agent has forgotten it.
pub(crate) fn exec_status(state: &mut State, call: &Call) -> Answer {
    answering(state, call)?;
    let pid = call.id("pid").unwrap_or(0);
    let running = state.vms.get_mut(&call.vmid()).and_then(|vm| vm.running.as_mut());
    let Some(running) = running else { return Ok(Reply::null()) };
    let Some(command) = running.commands.get_mut(&pid) else {
        return Err(Refusal::failed("Agent error: PID ld does not exist").into());
    };
    if !std::mem::replace(&mut command.asked, true) {
        return Ok(Reply::data(json!({ "exited": 0 })));
    }
    let mut data = json!({ "exited": 1, "exitcode": command.exit });
    for (key, text) in [("out-data", &command.out), ("err-data", &command.err)] {
        if !text.is_empty() {
            data[key] = text.as_str().into();
        }
    }
    running.commands.remove(&pid);
    Ok(Reply::data(data))
}

/// Runs what a guest here knows: `echo`, `true`, `false`, `hostname`, `exit`, and a shell with a list of them.
fn run(words: &[&str], name: &str) -> Option<Command> {
    let mut command = Command { asked: false, exit: 0, out: String::new(), err: String::new() };
    if let [shell, "-c", script, ..] = words {
        if !matches!(shell.rsplit('/').next(), Some("sh" | "bash")) {
            return None;
        }
        for part in script.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (part, to_err) = part.strip_suffix(">&2").map_or((part, false), |part| (part.trim(), true));
            let words: Vec<&str> = part.split_whitespace().collect();
            let (exit, out) = builtin(&words, name).unwrap_or((127, String::new()));
            command.exit = exit;
            if to_err {
                command.err.push_str(&out);
            } else {
                command.out.push_str(&out);
            }
            if words.first() == Some(&"exit") {
                break;
            }
        }
        return Some(command);
    }
    let (exit, out) = builtin(words, name)?;
    Some(Command { exit, out, ..command })
}

fn builtin(words: &[&str], name: &str) -> Option<(i32, String)> {
    match words {
        ["true"] => Some((0, String::new())),
        ["false"] => Some((1, String::new())),
        ["hostname"] => Some((0, format!("{name}\n"))),
        ["echo", rest @ ..] => Some((0, format!("{}\n", rest.join(" ")))),
        ["exit", code] => Some((code.parse().ok()?, String::new())),
        _ => None,
    }
}
