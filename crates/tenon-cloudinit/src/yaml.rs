//! How do values become YAML that every reader in the guest takes for the same strings?
//!
//! cloud-init reads with PyYAML, which follows YAML 1.1: a bare `no` is a boolean there, `0600` is octal and
//! `10:20:30` counts in sixties. The emitter's default quotes all of those, so the version must not be raised to 1.2.

use serde::Serialize;

use crate::Error;

/// No line is broken to fit a width: a long key or certificate stays one line that a person can search for.
const NEVER_FOLD: usize = usize::MAX;

/// `value` as one YAML document. `what` names it in the error.
pub(crate) fn to_yaml<T: Serialize>(what: &'static str, value: &T) -> Result<String, Error> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: NEVER_FOLD, yaml_12: false };
    serde_saphyr::to_string_with_options(value, options).map_err(|source| Error::Yaml { what, source })
}

/// For `skip_serializing_if`, which hands over a reference.
pub(crate) fn is_false(flag: &bool) -> bool {
    !*flag
}

/// For `skip_serializing_if`, which hands over a reference.
pub(crate) fn is_zero(number: &u32) -> bool {
    *number == 0
}
