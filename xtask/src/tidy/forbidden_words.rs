//! Rule: the project stands alone. It names no folder beside it, no path of one computer, no package host.

use std::path::Path;

use super::Problem;
use crate::tree::Tree;

/// Written in two parts each, so that this file does not break its own rule.
const WORDS: [(&str, &str); 12] = [
    (concat!("../", "shared"), "a folder that is not part of the project"),
    (concat!(".lib", "rary/"), "a folder that is not part of the project"),
    (concat!("/wo", "rk/"), "a path that exists on one computer only; write a path relative to the project"),
    (concat!("/ro", "ot/"), "a path that exists on one computer only; write a path relative to the project"),
    (concat!("/ho", "me/"), "a path that exists on one computer only; write a path relative to the project"),
    (concat!("/Us", "ers/"), "a path that exists on one computer only; write a path relative to the project"),
    (concat!("proxy.gol", "ang.org"), "the host of a package registry; say what is fetched, not from where"),
    (concat!("index.crat", "es.io"), "the host of a package registry; say what is fetched, not from where"),
    (concat!("static.crat", "es.io"), "the host of a package registry; say what is fetched, not from where"),
    (concat!("py", "pi.org"), "the host of a package registry; say what is fetched, not from where"),
    (concat!("registry.npm", "js.org"), "the host of a package registry; say what is fetched, not from where"),
    (concat!("deb.deb", "ian.org"), "the host of a package registry; say what is fetched, not from where"),
];

/// What a line says whose path is one inside a guest, which is everybody's machine.
const GUEST_PATH: &str = "(guest path)";

/// Written by tools, not by us.
const LOCKS: [&str; 3] = ["Cargo.lock", "go.sum", "package-lock.json"];

pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Problem>> {
    let written = tree.texts.iter().filter(|(path, _)| !is_lock(path));
    let mut problems = Vec::new();
    for (path, text) in written {
        for (number, line) in text.lines().enumerate() {
            let found = WORDS.iter().filter(|(word, _)| stands_in(word, line) && !line.contains(GUEST_PATH));
            problems.extend(found.map(|(word, why)| Problem::new(path, number + 1, format!("`{word}`: {why}"))));
        }
    }
    Ok(problems)
}

fn is_lock(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| LOCKS.contains(&name))
}

/// A path counts only where it starts: `/srv/x` is not in `docs/srv/x`.
fn stands_in(word: &str, line: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|head| head.chars().next_back());
        !word.starts_with('/') || before.is_none_or(|c| !c.is_alphanumeric() && !"-_.}~".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_counts_only_where_it_starts() {
        assert!(stands_in("/srv/", "see /srv/x"));
        assert!(stands_in("/srv/", "\"/srv/x\""));
        assert!(!stands_in("/srv/", "docs/srv/x"));
        assert!(!stands_in("/srv/", "${HOME}/srv/x"));
        assert!(!stands_in("/srv/", "~/srv/x"));
    }
}
