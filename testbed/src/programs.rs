//! Which programs the testbed runs, at which version, and how each is built.
//!
//! The version of a program is written once, in the `go.mod` of its family; this file reads it from there.

use crate::version::Version;

/// Programs that are built from one `go.mod`, because they share one set of library versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// kube-apiserver, kube-controller-manager, kube-scheduler and kubectl.
    Kubernetes,
    /// etcd alone.
    Etcd,
    /// helm alone.
    Helm,
}

/// One program the testbed can look up or build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// The store behind the API server.
    Etcd,
    /// The API server.
    KubeApiserver,
    /// Garbage collection, workload keepers, CSR signing, token cleaning.
    KubeControllerManager,
    /// Binds pods to nodes.
    KubeScheduler,
    /// The command line people use.
    Kubectl,
    /// Installs charts.
    Helm,
}

impl Program {
    /// Every program, in the order they are built: the API server first, because the others then reuse its packages.
    pub const ALL: [Program; 6] = [
        Program::Etcd,
        Program::KubeApiserver,
        Program::KubeControllerManager,
        Program::KubeScheduler,
        Program::Kubectl,
        Program::Helm,
    ];

    /// The four that make a control plane.
    pub const CONTROL_PLANE: [Program; 4] =
        [Program::Etcd, Program::KubeApiserver, Program::KubeControllerManager, Program::KubeScheduler];

    /// The file name, and the name people know.
    pub fn name(self) -> &'static str {
        match self {
            Program::Etcd => "etcd",
            Program::KubeApiserver => "kube-apiserver",
            Program::KubeControllerManager => "kube-controller-manager",
            Program::KubeScheduler => "kube-scheduler",
            Program::Kubectl => "kubectl",
            Program::Helm => "helm",
        }
    }

    /// The family whose `go.mod` pins it.
    pub fn family(self) -> Family {
        match self {
            Program::Etcd => Family::Etcd,
            Program::Helm => Family::Helm,
            _ => Family::Kubernetes,
        }
    }

    /// The version the testbed is pinned to.
    pub fn version(self) -> Version {
        self.family().version()
    }

    /// The Go package that is its `main`.
    pub fn package(self) -> String {
        match self {
            Program::Etcd => "go.etcd.io/etcd/server/v3".to_owned(),
            Program::Helm => "helm.sh/helm/v4/cmd/helm".to_owned(),
            other => format!("k8s.io/kubernetes/cmd/{}", other.name()),
        }
    }

    /// The arguments that make it print its version without touching anything.
    pub fn version_args(self) -> &'static [&'static str] {
        match self {
            Program::Kubectl => &["version", "--client"],
            Program::Helm => &["version", "--short"],
            _ => &["--version"],
        }
    }
}

impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Family {
    /// The folder below `testbed/` that holds its `go.mod`, which is also its name in the cache.
    pub fn folder(self) -> &'static str {
        match self {
            Family::Kubernetes => "kubernetes",
            Family::Etcd => "etcd",
            Family::Helm => "helm",
        }
    }

    /// Its `go.mod`, as committed.
    pub fn go_mod(self) -> &'static str {
        match self {
            Family::Kubernetes => include_str!("../kubernetes/go.mod"),
            Family::Etcd => include_str!("../etcd/go.mod"),
            Family::Helm => include_str!("../helm/go.mod"),
        }
    }

    /// Its `go.sum`, as committed.
    pub fn go_sum(self) -> &'static str {
        match self {
            Family::Kubernetes => include_str!("../kubernetes/go.sum"),
            Family::Etcd => include_str!("../etcd/go.sum"),
            Family::Helm => include_str!("../helm/go.sum"),
        }
    }

    fn module(self) -> &'static str {
        match self {
            Family::Kubernetes => "k8s.io/kubernetes",
            Family::Etcd => "go.etcd.io/etcd/server/v3",
            Family::Helm => "helm.sh/helm/v4",
        }
    }

    /// The version its `go.mod` requires.
    pub fn version(self) -> Version {
        self.go_mod()
            .lines()
            .filter_map(|line| line.trim().trim_start_matches("require ").strip_prefix(self.module()))
            .find_map(|rest| rest.strip_prefix(' ').and_then(Version::find_in))
            .expect("a test holds every go.mod to name its module's version")
    }

    /// Linker flags: smaller files, and a version stamp where the program would otherwise call itself v0.0.0.
    pub fn ldflags(self) -> String {
        let version = self.version();
        let stamp = match self {
            Family::Kubernetes => ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"]
                .map(|package| {
                    format!(
                        " -X {package}.gitVersion=v{version} -X {package}.gitMajor={} -X {package}.gitMinor={}",
                        version.major, version.minor
                    )
                })
                .concat(),
            Family::Helm => format!(" -X helm.sh/helm/v4/internal/version.version=v{version}"),
            // etcd carries its version as a constant.
            Family::Etcd => String::new(),
        };
        format!("-s -w{stamp}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_names_its_version_in_its_go_mod() {
        for program in Program::ALL {
            assert!(program.version().major > 0, "{program}");
        }
        assert_eq!(Program::Kubectl.version(), Program::KubeApiserver.version());
    }

    #[test]
    fn the_version_is_stamped_so_that_clients_can_parse_it() {
        let flags = Family::Kubernetes.ldflags();
        let version = Family::Kubernetes.version();
        assert!(flags.contains(&format!("component-base/version.gitVersion=v{version}")), "{flags}");
        assert!(flags.contains(&format!("gitMinor={}", version.minor)), "{flags}");
    }
}
