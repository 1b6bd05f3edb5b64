//! Taints keep pods off nodes; tolerations let them on all the same.

use std::fmt;

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// They are not scheduled here.
    NoSchedule,
    /// They are scheduled here only if nothing else fits.
    PreferNoSchedule,
    /// They are not scheduled here and are evicted.
    NoExecute,
}

/// A mark on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    /// Its name.
    pub key: String,
    /// Its value, empty if it has none.
    pub value: String,
    /// What it does.
    pub effect: Effect,
}

/// What a pod puts up with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toleration {
    /// The taint's name; `None` for any, which needs `Exists`.
    pub key: Option<String>,
    /// How the value is compared.
    pub value: Tolerated,
    /// The effect; `None` for any.
    pub effect: Option<Effect>,
}

/// Which values of a taint are tolerated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tolerated {
    /// Any.
    Exists,
    /// Just this one.
    Equal(String),
}

impl Taint {
    /// Whether pods without a toleration stay off. `PreferNoSchedule` is a wish, not a bar.
    pub fn is_a_bar(&self) -> bool {
        self.effect != Effect::PreferNoSchedule
    }

    /// Whether one of these tolerations lets a pod on.
    pub fn is_tolerated_by(&self, tolerations: &[Toleration]) -> bool {
        tolerations.iter().any(|toleration| toleration.covers(self))
    }
}

impl Toleration {
    fn covers(&self, taint: &Taint) -> bool {
        let key = match &self.key {
            Some(key) => *key == taint.key,
            // Kubernetes allows no name only together with `Exists`.
            None => self.value == Tolerated::Exists,
        };
        let value = match &self.value {
            Tolerated::Exists => true,
            Tolerated::Equal(value) => *value == taint.value,
        };
        key && value && self.effect.is_none_or(|effect| effect == taint.effect)
    }
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = if self.value.is_empty() { String::new() } else { format!("={}", self.value) };
        write!(f, "{}{value}:{:?}", self.key, self.effect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toleration_covers_the_taints_it_names() {
        let taint = Taint { key: "gpu".to_owned(), value: "yes".to_owned(), effect: Effect::NoSchedule };
        let toleration =
            |key: Option<&str>, value: Tolerated, effect| Toleration { key: key.map(str::to_owned), value, effect };
        let equal = |value: &str| Tolerated::Equal(value.to_owned());
        for good in [
            toleration(Some("gpu"), equal("yes"), Some(Effect::NoSchedule)),
            toleration(Some("gpu"), Tolerated::Exists, None),
            toleration(None, Tolerated::Exists, None),
        ] {
            assert!(taint.is_tolerated_by(std::slice::from_ref(&good)), "{good:?}");
        }
        for bad in [
            toleration(Some("gpu"), equal("no"), None),
            toleration(Some("cpu"), Tolerated::Exists, None),
            toleration(Some("gpu"), Tolerated::Exists, Some(Effect::NoExecute)),
            toleration(None, equal("yes"), None),
        ] {
            assert!(!taint.is_tolerated_by(std::slice::from_ref(&bad)), "{bad:?}");
        }
        assert_eq!(taint.to_string(), "gpu=yes:NoSchedule");
    }
}
