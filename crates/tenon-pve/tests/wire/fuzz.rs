//! Nothing that comes over the wire, however broken, makes the client panic: ten thousand seeded mutations of what was
//! recorded, or as many as `cargo xtask fuzz` asks for, of replies and of the options of VMs.

use bytes::Bytes;
use serde_json::Value;
use tenon_model::CpuSet;
use tenon_pve::{
    AgentOption, BootOrder, Client, Cpu, Detail, Drive, NetworkCard, NumaNode, PassThrough, Properties, Smbios,
    SmbiosText, Tags, TaskFilter, Upid, description_from_file, option_holds, read_reply, same_option,
};
use testbed::mutation;

use crate::recordings::{Canned, exchanges, plain, reply};

/// A small generator, so that a failure is found again by its seed.
struct Dice(u64);

impl Dice {
    /// The generator never leaves zero.
    fn new(seed: u64) -> Self {
        Self(mutation::seed(seed).max(1))
    }

    fn roll(&mut self, sides: usize) -> usize {
        // xorshift64*: good enough to spread mutations, and it needs no crate.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33).unwrap() % sides.max(1)
    }

    /// Some bytes dropped, doubled, swapped or replaced.
    fn mutate(&mut self, input: &[u8]) -> Vec<u8> {
        const SPICE: &[u8] = b"\0\"{}[],:=;%+-.0123456789eE\\/\n \xff\xc3(')nulltrue";
        let mut bytes = input.to_vec();
        for _ in 0..=self.roll(6) {
            let at = self.roll(bytes.len() + 1);
            match self.roll(5) {
                0 if at < bytes.len() => drop(bytes.remove(at)),
                1 => bytes.insert(at, SPICE[self.roll(SPICE.len())]),
                2 if at < bytes.len() => bytes[at] = SPICE[self.roll(SPICE.len())],
                3 => bytes.truncate(at),
                _ => {
                    let end = (at + self.roll(12)).min(bytes.len());
                    let again = bytes[at..end].to_vec();
                    bytes.splice(at..at, again);
                }
            }
        }
        bytes
    }
}

/// Reads one reply as everything the client reads.
async fn read_as_everything(client: &Client) {
    let (host, vmid) = ("pve1".parse().unwrap(), "100".parse().unwrap());
    let task: Upid = "UPID:pve1:00002874:00091F65:6AF96A3F:qmclone:1001:root@pam!test:".parse().unwrap();
    drop(client.resources().await);
    drop(client.cluster_status().await);
    drop(client.hosts().await);
    drop(client.host_status(&host).await);
    drop(client.storages(&host).await);
    drop(client.volumes(&host, "s", "iso").await);
    drop(client.vms(&host, Detail::Full).await);
    drop(client.pending(&host, vmid).await);
    drop(client.vm_status(&host, vmid).await);
    drop(client.tasks(&host, &TaskFilter::default()).await);
    drop(client.task_progress(&task).await);
    drop(client.task_log(&task).await);
    drop(client.firewall_rules(&host, vmid).await);
    drop(client.agent_interfaces(&host, vmid).await);
    drop(client.permissions(None).await);
    drop(client.pool("p").await);
    drop(client.interfaces(&host, None).await);
    drop(client.next_id().await);
    drop(
        client
            .start_vm(&host, vmid)
            .await
            .map_err(|error| (error.full_message(), error.advice(), format!("{error:?}"))),
    );
    if let Ok(config) = client.vm_config(&host, vmid).await {
        drop((config.differences(&config), config.drives(), config.network_cards(), config.uuid(), config.tags()));
    }
}

#[tokio::test]
async fn broken_replies_do_not_panic() {
    let (rows, mut dice) = (exchanges(), Dice::new(0x7E40_0D1C));
    for round in 0..mutation::runs() {
        let row = &rows[dice.roll(rows.len())];
        let body = match &row.body {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // Long listings are cut, or the time goes into their mere length.
        let body = dice.mutate(&body.as_bytes()[..body.len().min(3000)]);
        let reason: String = String::from_utf8_lossy(&dice.mutate(row.reason.as_bytes()))
            .chars()
            .filter(|letter| letter.is_ascii_graphic() || *letter == ' ')
            .collect();
        let status = [200, 200, 200, 400, 401, 403, 500, 501, 595, 596][dice.roll(10)];
        let broken = reply(status, &reason, Bytes::from(body));
        drop(read_reply(&broken));
        // Every reading of every mutation would take minutes; each reading sees hundreds of them.
        if round % 10 == 0 {
            read_as_everything(&Canned::new([Some(broken)]).client()).await;
        }
    }
}

#[test]
fn broken_options_do_not_panic() {
    let mut options: Vec<(String, String)> = Vec::new();
    for row in exchanges().into_iter().filter(|row| row.path.ends_with("/config") && row.data().is_object()) {
        options.extend(row.data().as_object().unwrap().iter().map(|(key, value)| (key.clone(), plain(value))));
    }
    let mut dice = Dice::new(0x7E40_0D1D);
    for _ in 0..mutation::runs() {
        let (key, text) = &options[dice.roll(options.len())];
        let broken = String::from_utf8_lossy(&dice.mutate(text.as_bytes())).into_owned();
        if let Ok(properties) = broken.parse::<Properties>() {
            assert_eq!(properties.to_string(), broken);
        }
        assert!(same_option(key, &broken, &broken) && option_holds(key, &broken, &broken), "{key}: {broken}");
        assert_eq!(same_option(key, text, &broken), same_option(key, &broken, text), "{key}: {broken}");
        let card = broken.parse::<NetworkCard>();
        drop(card.map(|mut card| (card.set("queues", "1"), card.with_model("e1000").map(|card| card.mac().is_some()))));
        drop(broken.parse::<Drive>().map(|drive| (drive.size(), drive.is_cloudinit(), drive.storage().is_some())));
        drop(broken.parse::<Smbios>().map(|smbios| (smbios.text("sku"), smbios.with_text(SmbiosText::Sku, "x"))));
        drop(broken.parse::<NumaNode>().map(|node| (node.cpus(), node.memory_mib())));
        drop(broken.parse::<Cpu>().map(|cpu| cpu.flags().count()));
        drop(broken.parse::<AgentOption>().map(|agent| agent.is_enabled()));
        drop(broken.parse::<PassThrough>().map(|device| device.addresses().count()));
        drop(broken.parse::<BootOrder>().map(|boot| boot.without("ide2")));
        drop(broken.parse::<CpuSet>().map(|cpus| cpus.count()));
        drop(broken.parse::<Upid>());
        drop((Tags::read(&broken), description_from_file(&broken)));
    }
}
