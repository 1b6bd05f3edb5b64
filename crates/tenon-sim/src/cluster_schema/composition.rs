//! Does a value fit the alternatives of its schema: anyOf, oneOf, allOf, not?

use super::check::{SchemaErrors, Subject, check_all};
use super::error::{FieldError, quoted};
use super::node::Node;

/// Checks every composed schema of a node. The server ties none of these errors to a field.
pub(super) fn check(schema: Node<'_>, subject: Subject<'_>) -> SchemaErrors {
    let mut outcome = SchemaErrors::default();
    any_of(schema, subject, &mut outcome);
    one_of(schema, subject, &mut outcome);
    all_of(schema, subject, &mut outcome);
    if let Some(node) = schema.node("not")
        && check_all(node, subject).errors.is_empty()
    {
        fail(&mut outcome, subject, "must not validate the schema (not)");
    }
    outcome.score += 1;
    outcome
}

fn fail(outcome: &mut SchemaErrors, subject: Subject<'_>, words: &str) {
    outcome.add(FieldError::nowhere(&format!("{} {words}", quoted(subject.path))));
}

/// Of two failures, the one that came closer; the first wins a tie.
fn closer(best: Option<SchemaErrors>, next: SchemaErrors) -> Option<SchemaErrors> {
    match best {
        Some(best) if next.score <= best.score => Some(best),
        _ => Some(next),
    }
}

fn any_of(schema: Node<'_>, subject: Subject<'_>, outcome: &mut SchemaErrors) {
    let mut best = None;
    for node in schema.nodes("anyOf") {
        let result = check_all(node, subject);
        if result.errors.is_empty() {
            outcome.merge(result);
            return;
        }
        best = closer(best, result);
    }
    if let Some(best) = best {
        fail(outcome, subject, "must validate at least one schema (anyOf)");
        outcome.merge(best);
    }
}

fn one_of(schema: Node<'_>, subject: Subject<'_>, outcome: &mut SchemaErrors) {
    let (mut best, mut fitting) = (None, Vec::new());
    for node in schema.nodes("oneOf") {
        let result = check_all(node, subject);
        if result.errors.is_empty() {
            fitting.push(result);
        } else {
            best = closer(best, result);
        }
    }
    match fitting.len() {
        0 => {
            if let Some(best) = best {
                fail(outcome, subject, "must validate one and only one schema (oneOf). Found none valid");
                outcome.merge(best);
            }
        }
        1 => fitting.into_iter().for_each(|result| outcome.merge(result)),
        count => {
            let words = format!("must validate one and only one schema (oneOf). Found {count} valid alternatives");
            fail(outcome, subject, &words);
        }
    }
}

fn all_of(schema: Node<'_>, subject: Subject<'_>, outcome: &mut SchemaErrors) {
    let results: Vec<SchemaErrors> = schema.nodes("allOf").map(|node| check_all(node, subject)).collect();
    let (total, fitting) = (results.len(), results.iter().filter(|result| result.errors.is_empty()).count());
    results.into_iter().for_each(|result| outcome.merge(result));
    if fitting != total {
        let none = if fitting == 0 { ". None validated" } else { "" };
        fail(outcome, subject, &format!("must validate all the schemas (allOf){none}"));
    }
}
