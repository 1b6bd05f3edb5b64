//! Table: which function answers which call. What the calls accept is in `schema`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::params::Call;
use crate::schema::{self, CallSpec};
use crate::state::State;
use crate::version::PveVersion;
use crate::wire::Answer;
use crate::{
    access_calls as access, agent, clone, cloud_init_drive, containers, content, create, datacenter, destroy, download,
    firewall_calls as fw, firewall_sets as sets, hosts, network, pools, power, resize, resources, storage, suspend,
    tasklist, template, update, upload, vm,
};

pub(crate) type Run = fn(&mut State, &Call) -> Answer;

static ROUTES: &[(&str, &str, Run)] = &[
    ("GET", "/version", hosts::version),
    ("POST", "/access/ticket", access::ticket),
    ("GET", "/access/permissions", access::permissions),
    ("GET", "/access/acl", access::acl),
    ("PUT", "/access/acl", access::update_acl),
    ("GET", "/access/roles", access::roles),
    ("POST", "/access/roles", access::add_role),
    ("GET", "/access/roles/{roleid}", access::role),
    ("DELETE", "/access/roles/{roleid}", access::remove_role),
    ("GET", "/access/users", access::users),
    ("POST", "/access/users", access::add_user),
    ("GET", "/access/users/{userid}", access::user),
    ("DELETE", "/access/users/{userid}", access::remove_user),
    ("GET", "/access/users/{userid}/token", access::tokens),
    ("GET", "/access/users/{userid}/token/{tokenid}", access::token),
    ("POST", "/access/users/{userid}/token/{tokenid}", access::add_token),
    ("DELETE", "/access/users/{userid}/token/{tokenid}", access::remove_token),
    ("GET", "/cluster/resources", resources::resources),
    ("GET", "/cluster/status", hosts::cluster_status),
    ("GET", "/cluster/nextid", datacenter::next_id),
    ("GET", "/cluster/options", datacenter::options),
    ("PUT", "/cluster/options", datacenter::set_options),
    ("GET", "/cluster/ha/status/current", datacenter::ha_current),
    ("GET", "/cluster/ha/status/manager_status", datacenter::ha_manager),
    ("GET", "/cluster/tasks", tasklist::cluster),
    ("GET", "/cluster/firewall/groups", fw::groups),
    ("POST", "/cluster/firewall/groups", fw::add_group),
    ("GET", "/cluster/firewall/groups/{group}", fw::group),
    ("POST", "/cluster/firewall/groups/{group}", fw::add_group_rule),
    ("DELETE", "/cluster/firewall/groups/{group}", fw::remove_group),
    ("GET", "/cluster/firewall/groups/{group}/{pos}", fw::group_rule),
    ("PUT", "/cluster/firewall/groups/{group}/{pos}", fw::change_group_rule),
    ("DELETE", "/cluster/firewall/groups/{group}/{pos}", fw::remove_group_rule),
    ("GET", "/pools", pools::list),
    ("POST", "/pools", pools::create),
    ("PUT", "/pools", pools::update),
    ("DELETE", "/pools", pools::delete),
    ("GET", "/pools/{poolid}", pools::show),
    ("PUT", "/pools/{poolid}", pools::update),
    ("DELETE", "/pools/{poolid}", pools::delete),
    ("GET", "/storage", storage::definitions),
    ("GET", "/storage/{storage}", storage::one_definition),
    ("GET", "/nodes", hosts::list),
    ("GET", "/nodes/{node}/version", hosts::version),
    ("GET", "/nodes/{node}/status", hosts::status),
    ("GET", "/nodes/{node}/network", network::list),
    ("GET", "/nodes/{node}/network/{iface}", network::show),
    ("GET", "/nodes/{node}/hardware/pci", network::pci),
    ("GET", "/nodes/{node}/capabilities/qemu/cpu", network::cpu_models),
    ("GET", "/nodes/{node}/storage", storage::list),
    ("GET", "/nodes/{node}/storage/{storage}/status", storage::status),
    ("GET", "/nodes/{node}/storage/{storage}/content", content::list),
    ("GET", "/nodes/{node}/storage/{storage}/content/{volume}", content::show),
    ("DELETE", "/nodes/{node}/storage/{storage}/content/{volume}", content::delete),
    ("POST", "/nodes/{node}/storage/{storage}/upload", upload::upload),
    ("POST", "/nodes/{node}/storage/{storage}/download-url", download::download),
    ("GET", "/nodes/{node}/tasks", tasklist::list),
    ("DELETE", "/nodes/{node}/tasks/{upid}", tasklist::stop),
    ("GET", "/nodes/{node}/tasks/{upid}/status", tasklist::status),
    ("GET", "/nodes/{node}/tasks/{upid}/log", tasklist::log),
    ("GET", "/nodes/{node}/lxc/{vmid}/config", containers::config),
    ("GET", "/nodes/{node}/qemu", vm::list),
    ("POST", "/nodes/{node}/qemu", create::create),
    ("DELETE", "/nodes/{node}/qemu/{vmid}", destroy::destroy),
    ("GET", "/nodes/{node}/qemu/{vmid}/config", vm::config),
    ("PUT", "/nodes/{node}/qemu/{vmid}/config", update::put),
    ("POST", "/nodes/{node}/qemu/{vmid}/config", update::post),
    ("GET", "/nodes/{node}/qemu/{vmid}/pending", vm::pending),
    ("GET", "/nodes/{node}/qemu/{vmid}/feature", vm::feature),
    ("POST", "/nodes/{node}/qemu/{vmid}/clone", clone::clone),
    ("POST", "/nodes/{node}/qemu/{vmid}/template", template::template),
    ("PUT", "/nodes/{node}/qemu/{vmid}/resize", resize::resize),
    ("PUT", "/nodes/{node}/qemu/{vmid}/unlink", update::unlink),
    ("GET", "/nodes/{node}/qemu/{vmid}/cloudinit", cloud_init_drive::pending),
    ("PUT", "/nodes/{node}/qemu/{vmid}/cloudinit", cloud_init_drive::regenerate),
    ("GET", "/nodes/{node}/qemu/{vmid}/cloudinit/dump", cloud_init_drive::dump),
    ("GET", "/nodes/{node}/qemu/{vmid}/status/current", vm::current),
    ("POST", "/nodes/{node}/qemu/{vmid}/status/start", power::start),
    ("POST", "/nodes/{node}/qemu/{vmid}/status/stop", power::stop),
    ("POST", "/nodes/{node}/qemu/{vmid}/status/shutdown", power::shutdown),
    ("POST", "/nodes/{node}/qemu/{vmid}/status/reset", suspend::reset),
    ("POST", "/nodes/{node}/qemu/{vmid}/status/reboot", power::reboot),
    ("POST", "/nodes/{node}/qemu/{vmid}/status/suspend", suspend::suspend),
    ("POST", "/nodes/{node}/qemu/{vmid}/status/resume", suspend::resume),
    ("POST", "/nodes/{node}/qemu/{vmid}/agent/ping", agent::ping),
    ("POST", "/nodes/{node}/qemu/{vmid}/agent/exec", agent::exec),
    ("GET", "/nodes/{node}/qemu/{vmid}/agent/exec-status", agent::exec_status),
    ("GET", "/nodes/{node}/qemu/{vmid}/agent/file-read", agent::file_read),
    ("GET", "/nodes/{node}/qemu/{vmid}/agent/get-host-name", agent::host_name),
    ("GET", "/nodes/{node}/qemu/{vmid}/agent/get-osinfo", agent::os_info),
    ("GET", "/nodes/{node}/qemu/{vmid}/agent/network-get-interfaces", agent::interfaces),
    ("GET", "/nodes/{node}/qemu/{vmid}/agent/get-time", agent::time),
    ("GET", "/nodes/{node}/qemu/{vmid}/firewall/options", fw::options),
    ("PUT", "/nodes/{node}/qemu/{vmid}/firewall/options", fw::set_options),
    ("GET", "/nodes/{node}/qemu/{vmid}/firewall/rules", fw::rules),
    ("POST", "/nodes/{node}/qemu/{vmid}/firewall/rules", fw::add_rule),
    ("GET", "/nodes/{node}/qemu/{vmid}/firewall/rules/{pos}", fw::rule),
    ("PUT", "/nodes/{node}/qemu/{vmid}/firewall/rules/{pos}", fw::change_rule),
    ("DELETE", "/nodes/{node}/qemu/{vmid}/firewall/rules/{pos}", fw::remove_rule),
    ("GET", "/nodes/{node}/qemu/{vmid}/firewall/ipset", sets::ipsets),
    ("POST", "/nodes/{node}/qemu/{vmid}/firewall/ipset", sets::add_ipset),
    ("GET", "/nodes/{node}/qemu/{vmid}/firewall/ipset/{name}", sets::ipset),
    ("POST", "/nodes/{node}/qemu/{vmid}/firewall/ipset/{name}", sets::add_entry),
    ("DELETE", "/nodes/{node}/qemu/{vmid}/firewall/ipset/{name}", sets::remove_ipset),
    ("GET", "/nodes/{node}/qemu/{vmid}/firewall/ipset/{name}/{cidr}", sets::entry),
    ("PUT", "/nodes/{node}/qemu/{vmid}/firewall/ipset/{name}/{cidr}", sets::change_entry),
    ("DELETE", "/nodes/{node}/qemu/{vmid}/firewall/ipset/{name}/{cidr}", sets::remove_entry),
    ("GET", "/nodes/{node}/qemu/{vmid}/firewall/aliases", sets::aliases),
    ("POST", "/nodes/{node}/qemu/{vmid}/firewall/aliases", sets::add_alias),
    ("GET", "/nodes/{node}/qemu/{vmid}/firewall/aliases/{name}", sets::alias),
    ("PUT", "/nodes/{node}/qemu/{vmid}/firewall/aliases/{name}", sets::change_alias),
    ("DELETE", "/nodes/{node}/qemu/{vmid}/firewall/aliases/{name}", sets::remove_alias),
];

/// One call: what it accepts and who answers it.
pub(crate) struct Endpoint {
    pub(crate) spec: &'static CallSpec,
    pub(crate) run: Run,
}

fn endpoints(version: PveVersion) -> &'static [Endpoint] {
    static NEW: OnceLock<Vec<Endpoint>> = OnceLock::new();
    static OLD: OnceLock<Vec<Endpoint>> = OnceLock::new();
    let endpoints = if version == PveVersion::V9_2 { &NEW } else { &OLD };
    endpoints.get_or_init(|| {
        let calls = &schema::of(version).calls;
        let spec = |method: &str, path: &str| calls.iter().find(|c| c.method == method && c.path == path);
        ROUTES
            .iter()
            .filter_map(|(method, path, run)| Some(Endpoint { spec: spec(method, path)?, run: *run }))
            .collect()
    })
}

/// The endpoint for a decoded path, and the parameters that stand in the path.
pub(crate) fn find(
    version: PveVersion,
    method: &str,
    path: &str,
) -> Option<(&'static Endpoint, BTreeMap<String, String>)> {
    let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
    // A blank can not be addressed: such a volume does not exist for the API.
    if path.contains(' ') {
        return None;
    }
    let matching = endpoints(version).iter().filter(|e| e.spec.method == method);
    matching.filter_map(|e| Some((e, match_path(&e.spec.path, &segments)?))).next()
}

fn match_path(pattern: &str, segments: &[&str]) -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut rest = segments;
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let (first, others) = rest.split_first()?;
        match part.strip_prefix('{').and_then(|p| p.strip_suffix('}')) {
            // Volume ids and networks have slashes in them and are always last.
            Some(name @ ("volume" | "cidr")) => {
                found.insert(name.to_string(), rest.join("/"));
                return Some(found);
            }
            Some(name) => drop(found.insert(name.to_string(), (*first).to_string())),
            None if part != *first => return None,
            None => {}
        }
        rest = others;
    }
    rest.is_empty().then_some(found)
}
