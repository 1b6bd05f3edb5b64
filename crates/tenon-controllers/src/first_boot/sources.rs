//! The Secrets that a ProxmoxNodeClass names for first-boot data.
//!
//! They are read when they are needed and by name: nobody lists or watches other people's Secrets.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::{Client, ResourceExt};
use tenon_api::{MetadataOptions, MetadataType, SecretReference, names};
use tenon_cloudinit::{Templates, Values};

/// What a Secret holds: keys and contents.
pub type SecretData = BTreeMap<String, Vec<u8>>;

/// A user's templates and values.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The templates; without a Secret all files are built in.
    pub templates: Templates,
    /// Values for them.
    pub values: Values,
    /// What the templates came from, as an error names it: `Secret kube-system/worker`.
    pub origin: String,
}

impl Sources {
    /// From the data of Secrets; the one with templates comes with what an error calls it.
    pub fn of(templates: Option<(&str, SecretData)>, values: SecretData) -> Sources {
        let mut sources = Sources { values: values.into_iter().collect(), ..Sources::default() };
        if let Some((origin, data)) = templates {
            let contents = data.iter().map(|(key, content)| (key.as_str(), content.as_slice()));
            sources.templates = Templates::from_keys(contents);
            sources.origin = origin.to_owned();
        }
        sources
    }

    /// Why no seed can be rendered, with the Secret and the key if one of the templates is to blame.
    pub fn explain(&self, error: &tenon_cloudinit::Error) -> String {
        match error.file().filter(|file| self.templates.get(*file).is_some()) {
            Some(_) => format!("{}, key {error}", self.origin),
            None if error.is_of_kubelet() => format!("spec.kubeletConfiguration: {error}"),
            None => error.to_string(),
        }
    }
}

/// Why the Secrets of a class cannot be used: what is missing, and the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSources(pub String);

/// Where the Secrets with first-boot data are.
#[derive(Clone)]
pub struct NodeSecrets {
    client: Client,
    /// Whether that is another cluster than the one of the classes. Whoever may write classes there must not reach every
    /// Secret here, so that those meant for nodes bear a label.
    is_elsewhere: bool,
}

impl NodeSecrets {
    /// In the cluster of the controller, if that is another one, or else in that of the classes.
    pub fn new(workload: &Client, home: Option<Client>) -> NodeSecrets {
        let is_elsewhere = home.is_some();
        NodeSecrets { client: home.unwrap_or_else(|| workload.clone()), is_elsewhere }
    }

    /// Reads what a class names. A class without a CD-ROM has nothing to read.
    pub async fn sources(&self, options: &MetadataOptions) -> Result<Result<Sources, NoSources>, kube::Error> {
        if options.type_ == MetadataType::None {
            return Ok(Ok(Sources::default()));
        }
        let templates = match self.read("templatesRef", options.templates_ref.as_ref()).await? {
            Ok(found) => found,
            Err(missing) => return Ok(Err(missing)),
        };
        let values = match self.read("valuesRef", options.values_ref.as_ref()).await? {
            Ok(found) => found.map(|found| found.data).unwrap_or_default(),
            Err(missing) => return Ok(Err(missing)),
        };
        let origin = templates.as_ref().map(|found| format!("Secret {}", found.name)).unwrap_or_default();
        Ok(Ok(Sources::of(templates.map(|found| (origin.as_str(), found.data)), values)))
    }

    async fn read(
        &self,
        field: &str,
        reference: Option<&SecretReference>,
    ) -> Result<Result<Option<Found>, NoSources>, kube::Error> {
        let Some(reference) = reference else { return Ok(Ok(None)) };
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let (Some(namespace), Some(name)) = (given(&reference.namespace), given(&reference.name)) else {
            // A reference to nothing means no values, as with the Go provider.
            if field == "valuesRef" {
                return Ok(Ok(None));
            }
            let why = format!("spec.metadataOptions.{field} needs both name and namespace; set them");
            return Ok(Err(NoSources(why)));
        };
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
        let which = format!("Secret {namespace}/{name}, which spec.metadataOptions.{field} names,");
        match secrets.get_opt(&name).await {
            Ok(Some(secret)) if self.is_elsewhere && !secret.labels().contains_key(names::LABEL_NODE_DATA) => {
                let label = names::LABEL_NODE_DATA;
                let why =
                    format!("{which} does not have the label {label}, which it needs with --home-kubeconfig; set it");
                Ok(Err(NoSources(why)))
            }
            Ok(Some(secret)) => {
                let data = secret.data.unwrap_or_default().into_iter().map(|(key, bytes)| (key, bytes.0)).collect();
                Ok(Ok(Some(Found { name: format!("{namespace}/{name}"), data })))
            }
            Ok(None) => Ok(Err(NoSources(format!("{which} does not exist; create it")))),
            Err(kube::Error::Api(refusal)) if refusal.code == 403 => Ok(Err(NoSources(format!(
                "{which} cannot be read: {}; grant the controller get on Secrets in namespace {namespace}",
                refusal.message
            )))),
            Err(error) => Err(error),
        }
    }
}

/// A Secret that was read: its name with its namespace, and its data.
struct Found {
    name: String,
    data: SecretData,
}
