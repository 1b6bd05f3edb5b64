//! A NodeClaim of a cluster, with all that its first-boot data is made of. Nothing is written there.

use anyhow::{Context as _, anyhow};
use kube::api::Api;
use kube::{Client, ResourceExt as _};
use tenon_api::{NodeClaim, ProxmoxNodeClass, for_class, launch_record, names, status_message};
use tenon_cloudinit::Bootstrap;
use tenon_controllers::Clock;
use tenon_controllers::bridges;
use tenon_controllers::claim::{bootstrap_token, joined_cluster};
use tenon_controllers::election::Fence;
use tenon_controllers::first_boot::{NodeSecrets, Sources, VmFacts, sample};
use tenon_model::{LaunchRecord, full_message};
use tenon_pve::{Interface, VmConfig};

use super::choose::Role;
use super::claim;
use super::subject::{Subject, Wanted, named_type, needs_seed, no_sample, sample_config, vm_config};
use crate::controller::{clients, cloud};

/// Reads a claim and everything around it.
pub(super) fn gather(wanted: &Wanted<'_>, name: &str, remarks: &mut Vec<String>) -> anyhow::Result<Subject> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(async {
        // It never opens: nothing is changed, in Kubernetes or in Proxmox.
        let fence = Fence::closed(Clock::Wall);
        let client =
            clients::cluster(wanted.args.kubeconfig.as_deref(), "--kubeconfig", "render").await?.fenced(&fence)?;
        Look { client, fence, wanted, remarks }.subject(name).await
    })
}

/// A look at a cluster.
pub(super) struct Look<'a> {
    pub(super) client: Client,
    pub(super) fence: Fence,
    pub(super) wanted: &'a Wanted<'a>,
    pub(super) remarks: &'a mut Vec<String>,
}

impl Look<'_> {
    /// All there is to know of a claim.
    pub(super) async fn subject(&mut self, name: &str) -> anyhow::Result<Subject> {
        let claim = self.claim(name).await?;
        let class = self.class(&claim.spec.node_class_ref.name).await?;
        needs_seed(&class)?;
        let label = claim.labels().get(names::LABEL_INSTANCE_TYPE).cloned();
        let size = self
            .wanted
            .args
            .instance_type
            .clone()
            .or(label)
            .ok_or_else(|| anyhow!("NodeClaim {name} has no instance type yet; choose one with --instance-type"))?;
        let instance_type = for_class(named_type(&self.wanted.types, &size)?, &class);
        let record = claim.annotations().get(names::ANNOTATION_LAUNCH);
        let record = record.map(|text| launch_record::read(text)).transpose();
        let record = record.with_context(|| format!("cannot read the launch record of NodeClaim {name}"))?;
        let (config, bridges) = self.network(record.as_ref()).await?;
        Ok(Subject {
            sources: self.sources(&class).await?,
            bootstrap: self.bootstrap(&claim).await?,
            kubernetes_version: self.version().await?,
            vm: self.vm(&class, record.as_ref(), &config)?,
            instance_type,
            config,
            bridges,
            claim,
            class,
        })
    }

    async fn claim(&self, name: &str) -> anyhow::Result<NodeClaim> {
        let claims: Api<NodeClaim> = Api::all(self.client.clone());
        let claim = claims.get_opt(name).await.map_err(|error| unread(&format!("NodeClaim {name}"), &error))?;
        claim.ok_or_else(|| anyhow!("NodeClaim {name} does not exist in the cluster; see `kubectl get nodeclaims`"))
    }

    async fn class(&self, name: &str) -> anyhow::Result<ProxmoxNodeClass> {
        if let Some(class) = self.wanted.given.class_named(name)? {
            return Ok(class);
        }
        let classes: Api<ProxmoxNodeClass> = Api::all(self.client.clone());
        let class = classes.get_opt(name).await.map_err(|error| unread(&format!("ProxmoxNodeClass {name}"), &error))?;
        class.ok_or_else(|| anyhow!("ProxmoxNodeClass {name} does not exist in the cluster; create it"))
    }

    /// The Secrets of the cluster; those that are given as files take their place.
    async fn sources(&mut self, class: &ProxmoxNodeClass) -> anyhow::Result<Sources> {
        let mut options = class.spec.metadata_options.clone();
        let mut own = (None, None);
        if self.wanted.given.is_given(Role::Templates) {
            own.0 = self.wanted.given.secret(Role::Templates, options.templates_ref.take().as_ref(), self.remarks)?;
        }
        if self.wanted.given.is_given(Role::Values) {
            own.1 = self.wanted.given.secret(Role::Values, options.values_ref.take().as_ref(), self.remarks)?;
        }
        let read = NodeSecrets::new(&self.client, None)
            .sources(&options)
            .await
            .map_err(|error| unread("the Secrets of the class", &error))?;
        let mut sources = read.map_err(|missing| anyhow!("{}", missing.0))?;
        if let Some(found) = own.0 {
            let of_files = Sources::of(Some((&found.origin(), found.data)), Default::default());
            sources = Sources { values: sources.values, ..of_files };
        }
        if let Some(found) = own.1 {
            sources.values = Sources::of(None, found.data).values;
        }
        Ok(sources)
    }

    async fn bootstrap(&mut self, claim: &NodeClaim) -> anyhow::Result<Bootstrap> {
        let args = self.wanted.args;
        let joined = joined_cluster(&self.client, &args.system_namespace, args.cluster_endpoint.as_deref()).await;
        let joined = joined.map_err(|error| anyhow!("{}", error.full_message()))?.map_err(|why| anyhow!("{why}"))?;
        if joined.api_server.is_empty() {
            let why = &joined.no_api_server;
            self.remarks.push(format!("{why}; until then .Kubernetes.APIServer is empty"));
        }
        let token = bootstrap_token(&self.client, claim).await.map_err(|error| anyhow!("{}", error.full_message()))?;
        let token = match token {
            Some(token) => token,
            None => {
                let name = claim.name_any();
                self.remarks.push(format!(
                    "NodeClaim {name} has no bootstrap token (one is created for the launch and deleted when the node has \
                     registered): using a sample token"
                ));
                sample::bootstrap().ok_or_else(no_sample)?.token
            }
        };
        Ok(Bootstrap { api_server: joined.api_server, ca_pem: joined.ca_pem, token })
    }

    async fn version(&self) -> anyhow::Result<String> {
        let version = self.client.apiserver_version().await;
        Ok(version.map_err(|error| unread("the version of the API server", &error))?.git_version)
    }

    fn vm(
        &mut self,
        class: &ProxmoxNodeClass,
        record: Option<&LaunchRecord>,
        config: &VmConfig,
    ) -> anyhow::Result<VmFacts> {
        if let Some(record) = record {
            let vm = VmFacts::of(record);
            let uuid = if vm.uuid.is_empty() { config.uuid().unwrap_or_default() } else { vm.uuid.clone() };
            return Ok(VmFacts { uuid, ..vm });
        }
        self.remarks.push("the NodeClaim has no launch record: using a sample VM ID, UUID and host".to_owned());
        let place = claim::place(class, &claim::demands(None)).ok_or_else(no_sample)?;
        sample::vm(&place.region, place.host.as_str()).ok_or_else(no_sample)
    }

    /// The cards of the VM, and the bridges of its host.
    async fn network(&mut self, record: Option<&LaunchRecord>) -> anyhow::Result<(VmConfig, Vec<Interface>)> {
        let args = self.wanted.args;
        if let Some(config) = vm_config(args)? {
            return Ok((config, Vec::new()));
        }
        let (Some(path), Some(record)) = (&args.cloud_config, record) else {
            self.remarks.push(
                "the VM is not read from Proxmox: using one virtio card with DHCP; give --cloud-config or --vm-config"
                    .to_owned(),
            );
            return Ok((sample_config()?, Vec::new()));
        };
        let (region, host) = (&record.place.region, &record.place.host);
        let config = cloud(path)?;
        let found = config.regions.iter().find(|known| known.name == *region);
        let found = found.ok_or_else(|| anyhow!("cloud config {} has no region {region}", path.display()))?;
        let pve = found
            .client(&self.fence)
            .with_context(|| format!("cannot create the Proxmox client of region {region}"))?;
        let failed = |error: tenon_pve::Error| anyhow!("{}", error.full_message());
        Ok((pve.vm_config(host, record.vmid).await.map_err(failed)?, bridges(&pve, host).await.map_err(failed)?))
    }
}

fn unread(what: &str, error: &kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => {
            anyhow!("cannot read {what}: the API server answered {}: {}", status.code, status_message(status))
        }
        other => anyhow!(
            "cannot read {what}: {}; check that the API server named in the file given with --kubeconfig is running",
            full_message(other)
        ),
    }
}
