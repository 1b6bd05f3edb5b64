//! Is the role of SECURITY.md enough to change VMs that run, and does each privilege that is missing say its name?

use anyhow::Context as _;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tenon_api::{ProxmoxNodeClass, hash, names};
use tenon_pve::pve_rights::{AclPlace, Flow, PVE_CALLS, Privileges, REQUIRED, privileges};
use tenon_sim::{FaultKind, FaultSpec, LedgerEntry};

use crate::bench::quick_guests;
use crate::ground::Kind;
use crate::proxmox_admin::FEW;
use crate::world::World;

/// What the documentation asks for with security groups and resource pools that change.
fn role() -> Privileges {
    privileges(&[REQUIRED.as_slice(), &[Flow::SecurityGroups, Flow::PoolMoves]].concat())
}

/// One node of a class without tags and security groups, whose controller has this role.
async fn one_node(role: &Privileges) -> anyhow::Result<Option<World>> {
    let Some(mut world) = World::new(Kind::Embedded, quick_guests()).await? else { return Ok(None) };
    world.estate.add_pool("other");
    world.proxmox("POST", "/cluster/firewall/groups", &[("group", "web")]).await?;
    // Cards without the firewall, which a security group switches on.
    for (number, host) in [(1, "pve1"), (2, "pve2"), (3, "pve3")] {
        let card = format!("virtio=BC:24:11:00:00:0{number},bridge=vmbr0");
        world.proxmox("PUT", &format!("/nodes/{host}/qemu/900{number}/config"), &[("net0", &card)]).await?;
    }
    world.use_role(role).await?;
    world.add_template("debian-13").await?;
    world.add_class(json!({ "resourcePool": "k8s" })).await?;
    world.add_pool(json!({})).await?;
    world.start_controller()?;
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    Ok(Some(world))
}

/// Changes all of the class that VMs which run take over; the hash of a VM that has it.
async fn change_class(world: &World) -> anyhow::Result<String> {
    let spec = json!({ "tags": ["b"], "securityGroups": [{ "name": "web" }], "resourcePool": "other" });
    let classes = Api::<ProxmoxNodeClass>::all(world.admin.clone());
    let class = classes.patch("default", &PatchParams::default(), &Patch::Merge(&json!({ "spec": spec }))).await?;
    Ok(hash::of_class_in_place(&class))
}

async fn applied(world: &World) -> anyhow::Result<String> {
    let claims = world.claims().await?;
    let claim = claims.first().context("there is no NodeClaim")?;
    Ok(claim.annotations().get(names::ANNOTATION_IN_PLACE_HASH).cloned().unwrap_or_default())
}

async fn until_applied(world: &World, wanted: &str) -> anyhow::Result<()> {
    world.until("the VM is as the class says", async || Ok((applied(world).await? == wanted).then_some(()))).await
}

/// Requests of the controller that Proxmox refused since this many entries of the ledger.
fn refused(world: &World, since: usize) -> Vec<LedgerEntry> {
    let made = world.estate.ledger().into_iter().skip(since);
    // A change of a pool is refused with 500, and says 403 in its text.
    made.filter(|entry| entry.user == FEW && entry.reason.contains("Permission check failed")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_runs_is_changed_with_exactly_the_role_of_the_documentation() -> anyhow::Result<()> {
    let Some(world) = one_node(&role()).await? else { return Ok(()) };
    let since = world.estate.ledger().len();
    let wanted = change_class(&world).await?;
    until_applied(&world, &wanted).await?;
    assert_eq!(refused(&world, since), []);
    let made: Vec<LedgerEntry> = world.estate.ledger().into_iter().skip(since).collect();
    for (method, end) in
        [("PUT", "/config"), ("POST", "/firewall/rules"), ("PUT", "/firewall/options"), ("PUT", "/pools")]
    {
        let is_made = made.iter().any(|entry| entry.method == method && entry.path.ends_with(end));
        assert!(is_made, "{method} {end} is not tried here");
    }
    world.end().await
}

#[tokio::test(start_paused = true)]
async fn a_move_whose_reply_was_lost_is_finished_by_a_token_that_sees_no_pools() -> anyhow::Result<()> {
    let Some(world) = one_node(&role()).await? else { return Ok(()) };
    let since = world.estate.ledger().len();
    world.estate.fail_next(FaultSpec::new("PUT", "/pools", FaultKind::DropReply));
    let wanted = change_class(&world).await?;
    until_applied(&world, &wanted).await?;
    let moves = world.estate.ledger().into_iter().skip(since).filter(|entry| entry.path == "/pools");
    let moves: Vec<(u16, String)> = moves.map(|entry| (entry.status, entry.reason)).collect();
    assert!(moves.len() == 2 && moves[1].1.contains("already a pool member"), "{moves:?}");
    world.end().await
}

/// What changes of VMs that run need, each privilege by itself.
const NEEDED: [(AclPlace, &str); 6] = [
    (AclPlace::NodePool, "VM.Audit"),
    (AclPlace::NodePool, "VM.Config.Options"),
    (AclPlace::NodePool, "VM.Config.Network"),
    (AclPlace::NodePool, "Pool.Allocate"),
    (AclPlace::NodePool, "VM.Allocate"),
    (AclPlace::Bridges, "SDN.Use"),
];

#[tokio::test(start_paused = true)]
async fn without_any_one_privilege_a_named_call_of_a_change_is_refused_and_it_is_made_once_it_is_granted()
-> anyhow::Result<()> {
    for (place, privilege) in NEEDED {
        let Some(world) = one_node(&role()).await? else { return Ok(()) };
        let mut fewer = role();
        assert!(fewer.entry(place).or_default().remove(privilege), "{privilege} is not in the role");
        world.replace_role(&fewer).await?;
        let since = world.estate.ledger().len();
        let before = applied(&world).await?;
        let wanted = change_class(&world).await?;
        let what = format!("a call is refused without {privilege}");
        let named = world.until(&what, async || {
            let names_it = |entry: &LedgerEntry| {
                let mut rows = PVE_CALLS.iter().filter(|call| call.is(&entry.method, &entry.path));
                rows.any(|call| call.needs.contains(&(place, privilege)))
            };
            Ok(refused(&world, since).into_iter().find(names_it))
        });
        let named = named.await?;
        assert_ne!(wanted, before);
        // A VM that may not be read is not changed, and nothing is known to be wrong with it.
        if privilege != "VM.Audit" {
            let told = world.until_event("InPlaceUpdateFailed", privilege).await?;
            assert!(told.contains("ProxmoxNodeClass default to VM 20000"), "{told}");
        }
        assert_eq!(applied(&world).await?, before, "{} {} was refused", named.method, named.path);
        world.replace_role(&role()).await?;
        until_applied(&world, &wanted).await.with_context(|| format!("{privilege} is granted again"))?;
        world.end().await?;
    }
    Ok(())
}
