//! Which of the objects in the files are meant.

use std::sync::Arc;

use anyhow::{anyhow, bail};
use kube::ResourceExt as _;
use tenon_api::{NodePool, ProxmoxNodeClass, SecretReference};

use super::Render;
use super::files::{FoundSecret, Objects, Reader};

/// Everything that was given.
#[derive(Debug, Default)]
pub(super) struct Given {
    class: Option<Arc<Objects>>,
    pool: Option<Arc<Objects>>,
    templates: Vec<Arc<Objects>>,
    values: Vec<Arc<Objects>>,
}

/// A Secret that a class names, and the flag that gives it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role {
    Templates,
    Values,
}

impl Role {
    fn field(self) -> &'static str {
        match self {
            Role::Templates => "templatesRef",
            Role::Values => "valuesRef",
        }
    }

    fn flag(self) -> &'static str {
        match self {
            Role::Templates => "--templates",
            Role::Values => "--values",
        }
    }
}

impl Given {
    /// Reads the files.
    pub(super) fn read(args: &Render) -> anyhow::Result<Given> {
        let mut reader = Reader::default();
        let mut one = |path: &Option<std::path::PathBuf>, flag: &str| {
            path.as_ref().map(|path| reader.objects(path, flag)).transpose()
        };
        let (class, pool) = (one(&args.nodeclass, "--nodeclass")?, one(&args.nodepool, "--nodepool")?);
        let mut all = |role: Role, paths: &[std::path::PathBuf]| {
            paths.iter().map(|path| reader.objects(path, role.flag())).collect::<anyhow::Result<Vec<_>>>()
        };
        let (templates, values) = (all(Role::Templates, &args.templates)?, all(Role::Values, &args.values)?);
        Ok(Given { class, pool, templates, values })
    }

    /// The ProxmoxNodeClass with this name, if files have one.
    pub(super) fn class_named(&self, name: &str) -> anyhow::Result<Option<ProxmoxNodeClass>> {
        let Some(file) = &self.class else { return Ok(None) };
        let found = file.classes.iter().find(|class| class.name_any() == name).cloned();
        let missing =
            || anyhow!("the file given with --nodeclass has no ProxmoxNodeClass {name}, which the NodeClaim names");
        found.ok_or_else(missing).map(Some)
    }

    /// The class, and the pool that its node belongs to if there is one.
    pub(super) fn class_and_pool(&self) -> anyhow::Result<(ProxmoxNodeClass, Option<NodePool>)> {
        let classes = self.class.as_ref().map(|file| file.classes.as_slice()).unwrap_or_default();
        let pools = self.pool.as_ref().or(self.class.as_ref()).map(|file| file.pools.as_slice()).unwrap_or_default();
        let named = |pool: &NodePool| {
            let name = &pool.spec.template.spec.node_class_ref.name;
            classes.iter().find(|class| class.name_any() == *name)
        };
        let pairs: Vec<_> = pools.iter().filter_map(|pool| Some((named(pool)?, pool))).collect();
        match (pairs.as_slice(), classes) {
            (_, []) => bail!("the file given with --nodeclass has no ProxmoxNodeClass"),
            ([(class, pool)], _) => Ok(((*class).clone(), Some((*pool).clone()))),
            ([], _) if self.pool.is_some() => bail!("{}", no_pair(classes, pools)),
            ([], [class]) => Ok((class.clone(), None)),
            ([], _) => bail!(
                "the file given with --nodeclass has several ProxmoxNodeClasses ({}); give --nodepool a file with a NodePool \
                 that references one of them",
                list(classes)
            ),
            _ => bail!(
                "several NodePools ({}) reference a ProxmoxNodeClass of the file given with --nodeclass; give --nodepool a \
                 file with one NodePool",
                list(&pairs.iter().map(|(_, pool)| (*pool).clone()).collect::<Vec<_>>())
            ),
        }
    }

    /// Whether the Secret of a role was given by its own flag.
    pub(super) fn is_given(&self, role: Role) -> bool {
        !self.own(role).is_empty()
    }

    fn own(&self, role: Role) -> &[Arc<Objects>] {
        match role {
            Role::Templates => &self.templates,
            Role::Values => &self.values,
        }
    }

    /// The Secret of a role: the one that the class names, or else the only one that was given for it.
    pub(super) fn secret(
        &self,
        role: Role,
        reference: Option<&SecretReference>,
        remarks: &mut Vec<String>,
    ) -> anyhow::Result<Option<FoundSecret>> {
        let own: Vec<&FoundSecret> = self.own(role).iter().flat_map(|file| &file.secrets).collect();
        let others = [&self.class, &self.pool].into_iter().flatten().chain(&self.templates).chain(&self.values);
        let others = others.flat_map(|file| &file.secrets);
        let meant = |secret: &&FoundSecret| reference.is_some_and(|reference| is_meant(secret, reference));
        let (flag, field) = (role.flag(), format!("spec.metadataOptions.{}", role.field()));
        let named = reference.map(shown);
        match (own.iter().copied().find(meant), own.as_slice()) {
            (Some(found), _) => return Ok(Some(found.clone())),
            (None, [only]) => {
                remarks.extend(remark(only, &field, named.as_deref()));
                return Ok(Some((*only).clone()));
            }
            (None, _) => {}
        }
        match (others.into_iter().find(meant), named) {
            (Some(found), _) => Ok(Some(found.clone())),
            (None, Some(name)) => bail!(
                "Secret {name}, which {field} names, is in none of the files; give the file that has it with {flag}"
            ),
            (None, None) if !own.is_empty() => {
                bail!("the files given with {flag} have several Secrets, and {field} names none of them")
            }
            (None, None) if self.is_given(role) => bail!("the files given with {flag} have no Secret"),
            (None, None) => Ok(None),
        }
    }
}

/// What to know of a Secret that is used although the class does not name it.
fn remark(secret: &FoundSecret, field: &str, named: Option<&str>) -> Option<String> {
    let origin = secret.origin();
    match named {
        // A directory stands for whatever the class names.
        Some(_) if secret.name.is_none() => None,
        Some(name) => Some(format!("{field} names Secret {name}; using {origin}")),
        None => Some(format!("{field} is not set, so nodes of this class would not get {origin}")),
    }
}

fn no_pair(classes: &[ProxmoxNodeClass], pools: &[NodePool]) -> String {
    let wanted: Vec<&str> = pools.iter().map(|pool| pool.spec.template.spec.node_class_ref.name.as_str()).collect();
    match pools {
        [] => "the file given with --nodepool has no NodePool".to_owned(),
        _ => format!(
            "NodePool {} references ProxmoxNodeClass {}, but the file given with --nodeclass has {}",
            list(pools),
            wanted.join(", "),
            list(classes)
        ),
    }
}

fn list<K: kube::Resource>(objects: &[K]) -> String {
    objects.iter().map(kube::ResourceExt::name_any).collect::<Vec<_>>().join(", ")
}

fn shown(reference: &SecretReference) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}/{}", text(&reference.namespace), text(&reference.name))
}

/// A manifest without a namespace may be applied in any.
fn is_meant(secret: &FoundSecret, reference: &SecretReference) -> bool {
    let is_there = secret.namespace.is_none() || secret.namespace == reference.namespace;
    secret.name.is_some() && secret.name == reference.name && is_there
}
