//! Which calls there are: method, path, parameters, handler. A table, exempt from the size limits.

use std::collections::BTreeMap;

use crate::params::{Extra, Field, Kind, may, need};
use crate::state::State;
use crate::wire::Answer;
use crate::{clone, content, destroy, hosts, power, resize, resources, storage, tasklist, update, vm};

const VM: [Field; 2] = [need("node", Kind::Text), need("vmid", Kind::VmId)];
const NODE: Field = need("node", Kind::Text);
const STORAGE: Field = need("storage", Kind::Text);
const UPID: Field = need("upid", Kind::Text);
const ANY: Kind = Kind::Int(0, i64::MAX);

/// One call.
pub(crate) struct Endpoint {
    pub(crate) method: &'static str,
    path: &'static str,
    pub(crate) fields: &'static [Field],
    pub(crate) extra: Extra,
    pub(crate) run: fn(&mut State, &crate::params::Call) -> Answer,
}

type Run = fn(&mut State, &crate::params::Call) -> Answer;

const fn on(method: &'static str, path: &'static str, fields: &'static [Field], run: Run) -> Endpoint {
    Endpoint { method, path, fields, extra: Extra::Refused, run }
}

const fn config(method: &'static str, fields: &'static [Field], run: Run) -> Endpoint {
    Endpoint { method, path: "nodes/{node}/qemu/{vmid}/config", fields, extra: Extra::ConfigKeys, run }
}

const CONTROLS: [Field; 7] = [
    VM[0],
    VM[1],
    may("delete", Kind::List),
    may("revert", Kind::List),
    may("digest", Kind::Text),
    may("force", Kind::Bool),
    may("skiplock", Kind::Bool),
];

static ENDPOINTS: &[Endpoint] = &[
    on("GET", "version", &[], hosts::version),
    on(
        "GET",
        "cluster/resources",
        &[may("type", Kind::OneOf(&["vm", "storage", "node", "sdn"]))],
        resources::resources,
    ),
    on("GET", "cluster/status", &[], hosts::cluster_status),
    on("GET", "cluster/nextid", &[may("vmid", Kind::VmId)], hosts::next_id),
    on("GET", "nodes", &[], hosts::list),
    on("GET", "nodes/{node}/status", &[NODE], hosts::status),
    on("GET", "nodes/{node}/qemu", &[NODE, may("full", Kind::Bool)], vm::list),
    on(
        "DELETE",
        "nodes/{node}/qemu/{vmid}",
        &[
            VM[0],
            VM[1],
            may("purge", Kind::Bool),
            may("destroy-unreferenced-disks", Kind::Bool),
            may("skiplock", Kind::Bool),
        ],
        destroy::destroy,
    ),
    on("GET", "nodes/{node}/qemu/{vmid}/status/current", &VM, vm::current),
    on("GET", "nodes/{node}/qemu/{vmid}/pending", &VM, vm::pending),
    on(
        "GET",
        "nodes/{node}/qemu/{vmid}/feature",
        &[VM[0], VM[1], need("feature", Kind::OneOf(&["snapshot", "clone", "copy"])), may("snapname", Kind::Text)],
        vm::feature,
    ),
    on(
        "GET",
        "nodes/{node}/qemu/{vmid}/config",
        &[VM[0], VM[1], may("current", Kind::Bool), may("snapshot", Kind::Text)],
        vm::config,
    ),
    config("PUT", &CONTROLS, update::put),
    config(
        "POST",
        &[
            CONTROLS[0],
            CONTROLS[1],
            CONTROLS[2],
            CONTROLS[3],
            CONTROLS[4],
            CONTROLS[5],
            CONTROLS[6],
            may("background_delay", Kind::Int(1, 30)),
        ],
        update::post,
    ),
    on(
        "POST",
        "nodes/{node}/qemu/{vmid}/clone",
        &[
            VM[0],
            VM[1],
            need("newid", Kind::VmId),
            may("name", Kind::Dns),
            may("description", Kind::Text),
            may("pool", Kind::Text),
            may("target", Kind::Text),
            may("full", Kind::Bool),
            may("storage", Kind::Text),
            may("format", Kind::OneOf(&["raw", "qcow2", "vmdk"])),
            may("snapname", Kind::Text),
            may("bwlimit", ANY),
        ],
        clone::clone,
    ),
    on(
        "PUT",
        "nodes/{node}/qemu/{vmid}/resize",
        &[
            VM[0],
            VM[1],
            need("disk", Kind::Disk),
            need("size", Kind::Size),
            may("digest", Kind::Text),
            may("skiplock", Kind::Bool),
        ],
        resize::resize,
    ),
    on("PUT", "nodes/{node}/qemu/{vmid}/cloudinit", &VM, update::regenerate_cloudinit),
    on(
        "POST",
        "nodes/{node}/qemu/{vmid}/status/start",
        &[
            VM[0],
            VM[1],
            may("skiplock", Kind::Bool),
            may("timeout", ANY),
            may("force-cpu", Kind::Text),
            may("machine", Kind::Text),
        ],
        power::start,
    ),
    on(
        "POST",
        "nodes/{node}/qemu/{vmid}/status/stop",
        &[
            VM[0],
            VM[1],
            may("skiplock", Kind::Bool),
            may("timeout", ANY),
            may("keepActive", Kind::Bool),
            may("overrule-shutdown", Kind::Bool),
        ],
        power::stop,
    ),
    on(
        "POST",
        "nodes/{node}/qemu/{vmid}/status/shutdown",
        &[
            VM[0],
            VM[1],
            may("skiplock", Kind::Bool),
            may("timeout", ANY),
            may("keepActive", Kind::Bool),
            may("forceStop", Kind::Bool),
        ],
        power::shutdown,
    ),
    on(
        "GET",
        "nodes/{node}/storage",
        &[
            NODE,
            may("content", Kind::Text),
            may("enabled", Kind::Bool),
            may("format", Kind::Bool),
            may("storage", Kind::Text),
            may("target", Kind::Text),
        ],
        storage::list,
    ),
    on("GET", "nodes/{node}/storage/{storage}/status", &[NODE, STORAGE], storage::status),
    on(
        "GET",
        "nodes/{node}/storage/{storage}/content",
        &[NODE, STORAGE, may("content", Kind::Text), may("vmid", Kind::VmId)],
        content::list,
    ),
    on(
        "GET",
        "nodes/{node}/storage/{storage}/content/{volume}",
        &[NODE, STORAGE, need("volume", Kind::Text)],
        content::show,
    ),
    on(
        "DELETE",
        "nodes/{node}/storage/{storage}/content/{volume}",
        &[NODE, STORAGE, need("volume", Kind::Text), may("delay", Kind::Int(1, 30))],
        content::delete,
    ),
    on(
        "POST",
        "nodes/{node}/storage/{storage}/upload",
        &[
            NODE,
            STORAGE,
            need("content", Kind::OneOf(&["iso", "vztmpl", "import"])),
            need("filename", Kind::Text),
            may("checksum", Kind::Text),
            may("checksum-algorithm", Kind::Text),
            may("tmpfilename", Kind::Text),
        ],
        content::upload,
    ),
    on(
        "GET",
        "nodes/{node}/tasks",
        &[
            NODE,
            may("errors", Kind::Bool),
            may("limit", ANY),
            may("since", ANY),
            may("source", Kind::OneOf(&["archive", "active", "all"])),
            may("start", ANY),
            may("statusfilter", Kind::Text),
            may("typefilter", Kind::Text),
            may("until", ANY),
            may("userfilter", Kind::Text),
            may("vmid", Kind::VmId),
        ],
        tasklist::list,
    ),
    on("GET", "nodes/{node}/tasks/{upid}/status", &[NODE, UPID], tasklist::status),
    on("GET", "nodes/{node}/tasks/{upid}/log", &[NODE, UPID, may("start", ANY), may("limit", ANY)], tasklist::log),
    on("DELETE", "nodes/{node}/tasks/{upid}", &[NODE, UPID], tasklist::stop),
];

/// The endpoint for a decoded path, and the parameters that stand in the path.
pub(crate) fn find(method: &str, path: &str) -> Option<(&'static Endpoint, BTreeMap<String, String>)> {
    let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
    // A blank can not be addressed: such a volume does not exist for the API.
    if path.contains(' ') {
        return None;
    }
    let matching = ENDPOINTS.iter().filter(|e| e.method == method);
    matching.filter_map(|e| Some((e, match_path(e.path, &segments)?))).next()
}

fn match_path(pattern: &str, segments: &[&str]) -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut rest = segments;
    for part in pattern.split('/') {
        let (first, others) = rest.split_first()?;
        match part.strip_prefix('{').and_then(|p| p.strip_suffix('}')) {
            // A volume id has slashes in it and is always last.
            Some("volume") => {
                found.insert("volume".to_string(), rest.join("/"));
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
