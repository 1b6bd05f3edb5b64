//! Taints keep pods off nodes; tolerations let them on all the same.

use std::fmt;

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// They are not scheduled here.
    NoSchedule,
    /// They are scheduled here only if nothing else fits.
    PreferNoSchedule,
    /// They are not scheduled here and are evicted.
    NoExecute,
}

/// A mark on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// Its name.
    pub key: String,
    /// Its value, empty if it has none.
    pub value: String,
    /// What it does.
    pub effect: Effect,
}

/// What a pod puts up with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Toleration {
    /// The taint's name; `None` for any, which needs `Exists`.
    pub key: Option<String>,
    /// How the value is compared.
    pub value: Tolerated,
    /// The effect; `None` for any.
    pub effect: Option<Effect>,
}

/// Which values of a taint are tolerated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Tolerated {
    /// Any.
    Exists,
    /// Just this one.
    Equal(String),
    /// Numbers below this one. A text that is no number tolerates nothing.
    Below(String),
    /// Numbers above this one.
    Above(String),
}

impl Taint {
    /// Whether pods without a toleration stay off. `PreferNoSchedule` is a wish, not a bar.
    pub fn is_a_bar(&self) -> bool {
        self.effect != Effect::PreferNoSchedule
    }

    /// Whether two are the same mark. The value is no part of that.
    pub fn is_same_as(&self, other: &Taint) -> bool {
        self.key == other.key && self.effect == other.effect
    }

    /// Whether it goes away by itself while a node starts.
    pub fn is_ephemeral(&self) -> bool {
        self.key.starts_with(EPHEMERAL_PREFIX) || EPHEMERAL.contains(&(self.key.as_str(), self.effect))
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
        let compared = |value: &str| Some((number(&taint.value)?, number(value)?));
        let value = match &self.value {
            Tolerated::Exists => true,
            Tolerated::Equal(value) => *value == taint.value,
            Tolerated::Below(value) => compared(value).is_some_and(|(taint, most)| taint < most),
            Tolerated::Above(value) => compared(value).is_some_and(|(taint, least)| taint > least),
        };
        key && value && self.effect.is_none_or(|effect| effect == taint.effect)
    }
}

/// A number as Kubernetes compares it: without a plus and without leading zeros.
fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

/// Taints that come and go while a node starts: it counts as free of them until it is initialised.
const EPHEMERAL: [(&str, Effect); 5] = [
    ("node.kubernetes.io/not-ready", Effect::NoSchedule),
    ("node.kubernetes.io/not-ready", Effect::NoExecute),
    ("node.kubernetes.io/unreachable", Effect::NoSchedule),
    ("node.cloudprovider.kubernetes.io/uninitialized", Effect::NoSchedule),
    ("karpenter.sh/unregistered", Effect::NoExecute),
];
/// Whoever checks that a node is ready marks it with one of these until then.
const EPHEMERAL_PREFIX: &str = "readiness.k8s.io/";

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

    #[test]
    fn numbers_are_compared_as_numbers() {
        let tolerates = |tolerated: Tolerated, value: &str| {
            let taint = Taint { key: "load".to_owned(), value: value.to_owned(), effect: Effect::NoSchedule };
            taint.is_tolerated_by(&[Toleration { key: Some("load".to_owned()), value: tolerated, effect: None }])
        };
        let below = |text: &str| Tolerated::Below(text.to_owned());
        let above = |text: &str| Tolerated::Above(text.to_owned());
        assert!(tolerates(below("10"), "9") && tolerates(below("10"), "-5") && !tolerates(below("10"), "10"));
        assert!(tolerates(above("10"), "11") && !tolerates(above("10"), "10") && !tolerates(above("10"), "9"));
        for (tolerated, taint) in
            [("10", "x"), ("10", ""), ("x", "9"), ("", ""), ("010", "9"), ("10", "+9"), ("10", "09")]
        {
            assert!(!tolerates(below(tolerated), taint), "{taint} below {tolerated}");
        }
    }

    fn taint(key: &str, effect: Effect) -> Taint {
        Taint { key: key.to_owned(), value: "any".to_owned(), effect }
    }

    #[test]
    fn marks_of_a_starting_node_are_known_by_exact_key_and_effect() {
        for (key, effect) in EPHEMERAL {
            assert!(taint(key, effect).is_ephemeral(), "{key}, whatever its value");
            assert!(!taint(&format!("{key}x"), effect).is_ephemeral(), "{key}x");
            assert!(!taint(key, Effect::PreferNoSchedule).is_ephemeral(), "{key}");
        }
        assert!(!taint("node.kubernetes.io/unreachable", Effect::NoExecute).is_ephemeral());
        assert!(!taint("karpenter.sh/unregistered", Effect::NoSchedule).is_ephemeral());
    }

    #[test]
    fn marks_of_readiness_are_known_by_how_their_key_begins_whatever_their_effect() {
        for effect in [Effect::NoSchedule, Effect::NoExecute, Effect::PreferNoSchedule] {
            assert!(taint("readiness.k8s.io/network", effect).is_ephemeral());
            for other in ["x.readiness.k8s.io/network", "x/readiness.k8s.io/network", "readiness.k8s.io", "readiness"] {
                assert!(!taint(other, effect).is_ephemeral(), "{other}");
            }
        }
    }

    #[test]
    fn marks_are_the_same_with_the_same_key_and_effect_whatever_their_value() {
        let bare = Taint { value: String::new(), ..taint("a", Effect::NoSchedule) };
        assert!(taint("a", Effect::NoSchedule).is_same_as(&bare));
        assert!(!taint("b", Effect::NoSchedule).is_same_as(&bare) && !taint("a", Effect::NoExecute).is_same_as(&bare));
    }
}
