//! How is an object made?

use std::sync::Arc;

use serde_json::{Value, json};

use super::failure::{ApiResult, Failure, invalid, required};
use super::kinds::Kind;
use super::state::State;
use super::target::Target;
use super::{defaults, events, object};
use crate::cluster_schema::FieldError;

/// Letters of generated names: none that make words or are mistaken for others.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// A generated name is cut so that it stays a label.
const BASE: usize = 58;
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

impl State {
    /// Makes an object and whatever follows from it.
    pub(crate) fn create(&mut self, target: &Target, mut new: Value) -> ApiResult<Arc<Value>> {
        let kind = &target.kind;
        check_kind(kind, &new)?;
        if !object::version(&new).is_empty() {
            return Err(Failure::internal("resourceVersion should not be set on objects to be created"));
        }
        check_place(target, &new)?;
        if kind.is_new_event() {
            new = events::to_old(new);
        }
        self.check_namespace(target, object::name(&new))?;
        self.check_definition(target)?;
        let name = self.choose_name(kind, &new)?;
        self.stamp_new(target, &mut new, &name);
        self.shape_new(kind, &mut new)?;
        let key = (target.namespace.clone(), name.clone());
        if self.store.get(&kind.shelf(), &key).is_some() {
            let is_unlucky = !object::text(&new, "/metadata/generateName").is_empty();
            return Err(if is_unlucky { Failure::not_unique(kind, &name) } else { Failure::exists(kind, &name) });
        }
        let made = self.store.put(&kind.shelf(), new);
        self.after_create(kind, &made);
        Ok(made)
    }

    fn choose_name(&mut self, kind: &Kind, new: &Value) -> ApiResult<String> {
        let (name, base) = (object::name(new), object::text(new, "/metadata/generateName"));
        if name.is_empty() && base.is_empty() {
            let error = required("metadata.name", "Required value: name or generateName is required");
            return Err(Failure::invalid(kind, "", &[error]));
        }
        if name.is_empty() {
            let tail: String =
                (0..5).filter_map(|_| LETTERS.get(self.chance.below(LETTERS.len()))).map(|b| char::from(*b)).collect();
            return Ok(base.chars().take(BASE).chain(tail.chars()).collect());
        }
        let errors = unqualified(kind, new);
        if !errors.is_empty() {
            return Err(Failure::invalid(kind, name, &errors));
        }
        // Names of roles may hold colons and more; theirs is the one exception among the built-ins.
        if kind.group != "rbac.authorization.k8s.io" && !is_subdomain(name) {
            let error = invalid("metadata.name", format!("Invalid value: {name:?}: {SUBDOMAIN}"));
            return Err(Failure::invalid(kind, name, &[error]));
        }
        Ok(name.to_owned())
    }

    fn stamp_new(&mut self, target: &Target, new: &mut Value, name: &str) {
        let (uid, now) = (self.chance.uuid(), self.stamp(0));
        let kind = &target.kind;
        let namespace = kind.is_namespaced.then(|| target.namespace.clone().into());
        for (key, value) in [
            ("name", Some(name.into())),
            ("namespace", namespace),
            ("uid", Some(uid.into())),
            ("creationTimestamp", Some(now)),
            ("generation", kind.has_generation.then(|| 1.into())),
            ("deletionTimestamp", None),
            ("deletionGracePeriodSeconds", None),
            ("managedFields", None),
            ("selfLink", None),
        ] {
            object::set_meta(new, key, value);
        }
        super::update::drop_empty(new);
        let api_version = if kind.is_new_event() { "v1".to_owned() } else { kind.api_version() };
        object::set(new, "apiVersion", Some(api_version.into()));
        object::set(new, "kind", Some(kind.kind.clone().into()));
    }

    /// Defaults, and what only the server may set.
    fn shape_new(&mut self, kind: &Kind, new: &mut Value) -> ApiResult<()> {
        if let Some(custom) = &kind.custom {
            if kind.has_status {
                object::set(new, "status", None);
            }
            let admit = self.config.admit;
            let name = object::name(new).to_owned();
            return admit(&custom.schema, new, None).map_err(|errors| Failure::invalid(kind, &name, &errors));
        }
        defaults::on_create(kind, new);
        defaults::on_write(kind, new);
        if kind.is_definition() {
            return self.define(new);
        }
        Ok(())
    }

    fn after_create(&mut self, kind: &Kind, made: &Arc<Value>) {
        if kind.is("", "namespaces") {
            self.furnish(object::name(made));
        }
        if kind.is_signing_request() {
            self.answer_request(made);
        }
        if kind.is("rbac.authorization.k8s.io", "clusterrolebindings") {
            self.answer_pending_requests();
        }
        // What belongs only to the dead goes at once, as a garbage collector that looks a moment later would have it.
        let mut owners = object::owners(made).peekable();
        if owners.peek().is_some() && !owners.any(|owner| self.store.is_alive(owner)) {
            let key = (object::namespace(made).to_owned(), object::name(made).to_owned());
            self.end(&kind.shelf(), &key);
        }
    }
}

/// Whether the body is of the kind its path says.
pub(crate) fn check_kind(kind: &Kind, new: &Value) -> ApiResult<()> {
    let (api_version, name) = (object::text(new, "/apiVersion"), object::text(new, "/kind"));
    let expected = kind.api_version();
    if kind.custom.is_none() {
        // Built-ins may leave both out.
        let is_other_version = !api_version.is_empty() && api_version != expected;
        let is_other = is_other_version || (!name.is_empty() && name != kind.kind);
        if is_other && !is_other_version {
            let told = format!(
                "{name} in version {:?} cannot be handled as a {}: converting ({}.{name}) to ({}.{}): unknown conversion",
                kind.version,
                kind.kind,
                kind.version,
                internal_group(kind),
                kind.kind,
            );
            return Err(Failure::bad_request(told));
        }
        if is_other {
            let told = format!(
                "the API version in the data ({api_version}) does not match the expected API version ({expected})"
            );
            return Err(Failure::bad_request(told));
        }
        return Ok(());
    }
    if api_version != expected {
        let told =
            format!("the API version in the data ({api_version}) does not match the expected API version ({expected})");
        return Err(Failure::bad_request(told));
    }
    if name != kind.kind {
        let details = json!({ "name": object::name(new), "group": kind.group, "kind": name });
        let error = invalid("kind", format!("Invalid value: {name:?}: must be {}", kind.kind));
        return Err(Failure::unprocessable(&format!("{name}.{}", kind.group), details, &[error]));
    }
    Ok(())
}

/// Finalizers of built-in kinds that do not say whose they are.
pub(crate) fn unqualified(kind: &Kind, new: &Value) -> Vec<FieldError> {
    const STANDARD: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
    let told = |(at, name): (usize, &str)| {
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        invalid(&format!("metadata.finalizers[{at}]"), format!("Invalid value: {name:?}: {why}"))
    };
    let names = object::finalizers(new).enumerate().filter(|_| kind.custom.is_none());
    names.filter(|(_, name)| !name.contains('/') && !STANDARD.contains(name)).map(told).collect()
}

fn internal_group(kind: &Kind) -> &str {
    if kind.group.is_empty() { "core" } else { kind.group.split('.').next().unwrap_or_default() }
}

/// Whether the body names the namespace of its path, or none.
pub(crate) fn check_place(target: &Target, new: &Value) -> ApiResult<()> {
    let named = object::namespace(new);
    if target.kind.is_namespaced && !named.is_empty() && named != target.namespace {
        let told = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Failure::bad_request(told));
    }
    Ok(())
}

fn is_subdomain(name: &str) -> bool {
    let is_label = |label: &str| {
        let inner = label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        inner && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}
