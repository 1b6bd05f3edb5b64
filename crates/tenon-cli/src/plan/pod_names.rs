//! Many pods in few words: `shop/web-1 … web-40 (40 pods)`.

use std::collections::BTreeMap;

/// Groups that are named before the rest is only counted.
const NAMED_MAX: usize = 4;

/// Pods of one namespace whose names begin alike.
struct Group<'a> {
    namespace: &'a str,
    names: Vec<&'a str>,
}

/// Pods as people would name them. Those that begin alike stand together, in the order of their numbers.
pub(super) fn summary<'a>(pods: impl IntoIterator<Item = &'a str>) -> String {
    let mut groups: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for pod in pods {
        let (namespace, name) = pod.split_once('/').unwrap_or(("", pod));
        groups.entry((namespace, stem(name))).or_default().push(name);
    }
    let groups: Vec<Group<'_>> = groups.into_iter().map(|((namespace, _), names)| Group { namespace, names }).collect();
    let (named, rest) = groups.split_at(groups.len().min(NAMED_MAX));
    let mut words: Vec<String> = named.iter().map(Group::words).collect();
    let left: usize = rest.iter().map(|group| group.names.len()).sum();
    if left > 0 {
        words.push(format!("{left} more"));
    }
    words.join(", ")
}

/// What a name has in common with those of its siblings: all but what follows the last dash.
fn stem(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(stem, _)| stem)
}

impl Group<'_> {
    fn words(&self) -> String {
        let mut names = self.names.clone();
        names.sort_by_key(|name| (number(name), *name));
        let divide = if self.namespace.is_empty() { "" } else { "/" };
        let namespace = self.namespace;
        match names.as_slice() {
            [] => String::new(),
            [one] => format!("{namespace}{divide}{one}"),
            [first, second] => format!("{namespace}{divide}{first}, {second}"),
            [first, .., last] => format!("{namespace}{divide}{first} … {last} ({} pods)", names.len()),
        }
    }
}

/// The number at the end of a name, so that 10 comes after 9.
fn number(name: &str) -> u64 {
    name.rsplit_once('-').and_then(|(_, end)| end.parse().ok()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn pods_that_begin_alike_are_named_by_the_first_and_the_last() {
        let many: Vec<String> = (1..=40).map(|index| format!("shop/web-{index}")).collect();
        let pods = many.iter().map(String::as_str).chain(["shop/db-0", "shop/cache-a", "shop/cache-b"]);
        assert_eq!(summary(pods), "shop/cache-a, cache-b, shop/db-0, shop/web-1 … web-40 (40 pods)");
        assert_eq!(summary([]), "");
        assert_eq!(summary(["a/x", "b/x", "c/x", "d/x", "e/x", "f/x"]), "a/x, b/x, c/x, d/x, 2 more");
    }
}
