//! What does an API server make of a custom resource: is it stored, and as what?
//!
//! [`admit`] does what a real server does with an object of a definition, in its order: unknown fields are pruned,
//! nulls dropped, defaults filled in ([`prepare`]); then shape, sets and rules are checked ([`validate`]). On an
//! update, what was already wrong with an unchanged part is forgiven, as the server forgives it. A schema is trusted
//! to be structural: the server checks that when the definition is created.
//!
//! Rules are evaluated by kube-cel, which has no type checker. It differs from the server in these points; of them only
//! the last can be met with our own definitions, by whoever writes `1.0` where a whole number belongs:
//!
//! - a mistake in a rule shows when it is asked, not when the definition is created; cost limits are not counted;
//! - `1 == 1.0` is false: the server refuses to compare the two unless one of them is `dyn`;
//! - an error in one round of `all` or `exists` ends it, even if a later round would decide the outcome;
//! - `cel.bind`, macros with two variables and `[?key]` are missing; `type()` knows the eight plain types;
//! - a whole number written `1.0` in an integer or int-or-string field is refused by the server if a rule of the field
//!   or of a parent reads it; here only a rule of the field itself refuses it, and rules of parents do not see it.
//!
//! Not here: the metadata of embedded resources, patternProperties and dependencies (no structural schema has them),
//! and formats no Kubernetes API uses (credit cards, colours, ISBN, e-mail, URI): they accept everything.

mod check;
mod coerce;
mod composition;
mod correlate;
mod error;
mod exposure;
mod expression;
mod formats;
mod lists;
mod node;
mod number;
mod pattern;
mod rules;
mod scalar;

use serde_json::Value;

use check::{Subject, check};
use correlate::Pair;
pub use error::{FieldError, FieldReason};
use node::Node;

/// Prepares and validates an object: `schema` is `spec.versions[].schema.openAPIV3Schema` of its definition, `old`
/// the object as it is stored, if it is. A refused object is left as [`prepare`] made it.
///
/// A server with a status subresource drops the status of a create, and takes the old one with an update, before it
/// validates: whoever calls this does so before.
pub fn admit(schema: &Value, new: &mut Value, old: Option<&Value>) -> Result<(), Vec<FieldError>> {
    prepare(schema, new);
    validate(schema, new, old)?;
    coerce::write_numbers(new);
    Ok(())
}

/// Prunes an object and fills in its defaults.
pub fn prepare(schema: &Value, object: &mut Value) {
    let schema = Node(schema);
    coerce::read_numbers(object);
    coerce::prune_resource(object, schema);
    coerce::drop_nulls(object, Some(schema));
    coerce::fill_defaults(object, schema);
}

/// Says everything that is wrong with an object that has been prepared.
pub fn validate(schema: &Value, new: &Value, old: Option<&Value>) -> Result<(), Vec<FieldError>> {
    let node = Node(schema);
    let pair = old.map(|old| Pair { new, old, schema: node });
    let mut errors = check(node, Subject { value: new, path: "", pair }).errors;
    check_lists(node, new, old, &mut errors);
    if errors.iter().any(|error| error.reason.blocks_rules()) {
        if has_rules(schema) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            errors.push(FieldError::new("", FieldReason::Invalid, &Value::Null, detail));
        }
    } else {
        errors.extend(rules::check(schema, new, old));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Duplicates are forgiven as long as the old object has any.
fn check_lists(schema: Node<'_>, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let mut before = Vec::new();
    if let Some(old) = old {
        lists::check(schema, old, "", &mut before);
    }
    if before.is_empty() {
        lists::check(schema, new, "", errors);
    }
}

/// Whether any part of a schema has rules.
fn has_rules(schema: &Value) -> bool {
    let node = Node(schema);
    let below = [node.items(), node.additional()].into_iter().flatten().map(|node| node.0);
    !node.list("x-kubernetes-validations").is_empty()
        || below.chain(node.properties().into_iter().flat_map(|properties| properties.values())).any(has_rules)
}
