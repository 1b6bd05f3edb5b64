//! A Kubernetes API server in memory, for demos, fast tests and stopped clocks.
//!
//! It serves our controllers, simulated kubelets and people with `kubectl`, and answers them as a real server of version
//! 1.36 does: the same codes, words and versions. Read in this order: `call` (verbs), `create`, `update`, `delete`
//! (objects), `store` and `watch` (changes). Deliberately absent: server-side apply, dry runs, managed fields, admission,
//! validation of built-in kinds, RBAC proper (only the bindings that let machines join count), and every controller but the garbage collector, the end of namespaces and
//! the signer of kubelets' certificates.

mod access;
mod approval;
mod call;
mod certificates;
mod collect;
mod config;
mod create;
mod defaults;
mod define;
mod delete;
mod discovery;
mod events;
mod evict;
mod failure;
mod first;
mod handle;
mod http;
mod identity;
mod jsonpath;
mod kinds;
mod list;
mod object;
mod patch;
mod pod_defaults;
mod protobuf;
mod query;
mod review;
mod scale;
mod selector;
mod state;
mod store;
mod strategic;
mod table;
mod target;
mod update;
mod watch;

pub use config::{Admit, ClusterConfig};
pub use handle::Cluster;
pub use http::ClusterService;
pub use identity::User;
