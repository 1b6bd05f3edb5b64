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
    /// Our program around the scheduler of Karpenter core, in `bench/karpenter`.
    Karpenter,
    /// The controller of karpenter-provider-proxmox alone.
    Provider,
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
    /// The controller that Tenon takes clusters over from.
    Provider,
    /// Plans with the real Karpenter, for comparison. No control plane needs it, so it is not in [`Program::ALL`].
    Karpenter,
}

impl Program {
    /// Every program a testbed runs, in the order they are built: the API server first, because the others then reuse its packages.
    pub const ALL: [Program; 7] = [
        Program::Etcd,
        Program::KubeApiserver,
        Program::KubeControllerManager,
        Program::KubeScheduler,
        Program::Kubectl,
        Program::Helm,
        Program::Provider,
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
            Program::Provider => "karpenter-provider-proxmox",
            Program::Karpenter => "karpenter",
        }
    }

    /// The family whose `go.mod` pins it.
    pub fn family(self) -> Family {
        match self {
            Program::Etcd => Family::Etcd,
            Program::Helm => Family::Helm,
            Program::Karpenter => Family::Karpenter,
            Program::Provider => Family::Provider,
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
            Program::Karpenter => ".".to_owned(),
            Program::Provider => format!("{}/cmd/controller", Family::Provider.module()),
            other => format!("k8s.io/kubernetes/cmd/{}", other.name()),
        }
    }

    /// The arguments that make it print its version without touching anything. The Go provider has none: it prints its flags, and
    /// its version is in the list of modules inside its file.
    pub fn version_args(self) -> &'static [&'static str] {
        match self {
            Program::Kubectl => &["version", "--client"],
            Program::Helm => &["version", "--short"],
            Program::Provider => &["-h"],
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
    /// Its name in the cache.
    pub fn folder(self) -> &'static str {
        match self {
            Family::Kubernetes => "kubernetes",
            Family::Etcd => "etcd",
            Family::Helm => "helm",
            Family::Karpenter => "karpenter",
            Family::Provider => "provider",
        }
    }

    /// The folder that holds its `go.mod`, relative to `testbed/`.
    pub fn module_folder(self) -> &'static str {
        match self {
            Family::Karpenter => "../bench/karpenter",
            other => other.folder(),
        }
    }

    /// Sources of ours that the build takes in beside its modules. A test holds the list to the folder.
    pub fn sources(self) -> &'static [&'static str] {
        match self {
            Family::Karpenter => &[
                include_str!("../../bench/karpenter/catalogue.go"),
                include_str!("../../bench/karpenter/conventions.go"),
                include_str!("../../bench/karpenter/disruption.go"),
                include_str!("../../bench/karpenter/disruption_check.go"),
                include_str!("../../bench/karpenter/disruption_clock.go"),
                include_str!("../../bench/karpenter/disruption_misplaced.go"),
                include_str!("../../bench/karpenter/disruption_own.go"),
                include_str!("../../bench/karpenter/disruption_play.go"),
                include_str!("../../bench/karpenter/disruption_report.go"),
                include_str!("../../bench/karpenter/disruption_rounds.go"),
                include_str!("../../bench/karpenter/disruption_timing.go"),
                include_str!("../../bench/karpenter/main.go"),
                include_str!("../../bench/karpenter/objects.go"),
                include_str!("../../bench/karpenter/plan.go"),
                include_str!("../../bench/karpenter/provider.go"),
                include_str!("../../bench/karpenter/result.go"),
                include_str!("../../bench/karpenter/settings.go"),
                include_str!("../../bench/karpenter/world.go"),
            ],
            _ => &[],
        }
    }

    /// Its `go.mod`, as committed.
    pub fn go_mod(self) -> &'static str {
        match self {
            Family::Kubernetes => include_str!("../kubernetes/go.mod"),
            Family::Etcd => include_str!("../etcd/go.mod"),
            Family::Helm => include_str!("../helm/go.mod"),
            Family::Karpenter => include_str!("../../bench/karpenter/go.mod"),
            Family::Provider => include_str!("../provider/go.mod"),
        }
    }

    /// Its `go.sum`, as committed.
    pub fn go_sum(self) -> &'static str {
        match self {
            Family::Kubernetes => include_str!("../kubernetes/go.sum"),
            Family::Etcd => include_str!("../etcd/go.sum"),
            Family::Helm => include_str!("../helm/go.sum"),
            Family::Karpenter => include_str!("../../bench/karpenter/go.sum"),
            Family::Provider => include_str!("../provider/go.sum"),
        }
    }

    /// The module whose version is that of its programs.
    pub(crate) fn module(self) -> &'static str {
        match self {
            Family::Kubernetes => "k8s.io/kubernetes",
            Family::Etcd => "go.etcd.io/etcd/server/v3",
            Family::Helm => "helm.sh/helm/v4",
            Family::Karpenter => "sigs.k8s.io/karpenter",
            Family::Provider => "github.com/sergelogvinov/karpenter-provider-proxmox",
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
            // etcd carries its version as a constant; that of the others is in the list of their modules.
            Family::Etcd | Family::Karpenter | Family::Provider => String::new(),
        };
        format!("-s -w{stamp}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_names_its_version_in_its_go_mod() {
        for program in Program::ALL.into_iter().chain([Program::Karpenter]) {
            assert!(program.version() > Version { major: 0, minor: 0, patch: 0 }, "{program}");
        }
        assert_eq!(Program::Kubectl.version(), Program::KubeApiserver.version());
    }

    #[test]
    fn every_source_of_ours_is_part_of_what_is_built() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(Family::Karpenter.module_folder());
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut texts: Vec<String> = files
            .filter(|path| path.extension().is_some_and(|extension| extension == "go"))
            .map(|path| std::fs::read_to_string(path).unwrap())
            .collect();
        texts.sort();
        let mut sources = Family::Karpenter.sources().to_vec();
        sources.sort_unstable();
        assert_eq!(texts, sources, "list every .go file of bench/karpenter in `sources`");
    }

    #[test]
    fn the_version_is_stamped_so_that_clients_can_parse_it() {
        let flags = Family::Kubernetes.ldflags();
        let version = Family::Kubernetes.version();
        assert!(flags.contains(&format!("component-base/version.gitVersion=v{version}")), "{flags}");
        assert!(flags.contains(&format!("gitMinor={}", version.minor)), "{flags}");
    }
}
