//! Names that are new every time (tasks, uuids, MAC addresses), matched one to one between the recording and here.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

/// What stands for what.
#[derive(Default)]
pub(crate) struct Names {
    ours: BTreeMap<String, String>,
    theirs: BTreeMap<String, String>,
}

/// Texts of these shapes are names.
const SHAPES: &str = r"UPID:[A-Za-z0-9]+:[0-9A-F]{8,}:[0-9A-F]{8,}:[0-9A-F]{8}:[a-z]+:[^:]*:[^:]*:|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?i:BC:24:11(?::[0-9A-F]{2}){3})|fe80::[0-9a-f:]+";
/// Texts of these shapes say when or which process; only their shape is compared.
const MOMENTS: &str = r"ctime=\d+|pveupload-[0-9a-f]{32}|tmp_dwnl\.\d+|\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}|\([0-9.]+ [KMG]?B/s\)|conf\.tmp\.\d+|suspend-\d{4}-\d{2}-\d{2}";

fn shapes() -> &'static Regex {
    static SHAPES_READ: LazyLock<Regex> = LazyLock::new(|| Regex::new(SHAPES).unwrap());
    &SHAPES_READ
}

fn moments() -> &'static Regex {
    static MOMENTS_READ: LazyLock<Regex> = LazyLock::new(|| Regex::new(MOMENTS).unwrap());
    &MOMENTS_READ
}

impl Names {
    pub(crate) fn bind(&mut self, theirs: &str, ours: &str) {
        self.ours.insert(theirs.into(), ours.into());
        self.theirs.insert(ours.into(), theirs.into());
    }

    pub(crate) fn ours(&self, theirs: &str) -> Option<&str> {
        self.ours.get(theirs).map(String::as_str)
    }

    /// A recorded request with our names in it.
    pub(crate) fn translate(&self, text: &str) -> String {
        let shape = shapes();
        shape
            .replace_all(text, |found: &regex::Captures<'_>| self.ours(&found[0]).unwrap_or(&found[0]).to_string())
            .into_owned()
    }

    /// Whether two texts are the same but for names and moments; binds names that are seen for the first time.
    pub(crate) fn same(&mut self, theirs: &str, ours: &str) -> bool {
        let (shape, moment) = (shapes(), moments());
        let plain = |text: &str| moment.replace_all(&shape.replace_all(text, "\u{1}"), "\u{2}").into_owned();
        if !alike(&plain(theirs), &plain(ours)) {
            return false;
        }
        let pairs: Vec<(String, String)> = shape
            .find_iter(theirs)
            .zip(shape.find_iter(ours))
            .map(|(theirs, ours)| (theirs.as_str().to_string(), ours.as_str().to_string()))
            .collect();
        pairs.into_iter().all(|(theirs, ours)| self.fits(&theirs, &ours))
    }

    fn fits(&mut self, theirs: &str, ours: &str) -> bool {
        let same_task = |part: usize| theirs.split(':').nth(part) == ours.split(':').nth(part);
        // What a task is about and who started it is no chance.
        if theirs.starts_with("UPID:") && ![1, 5, 6, 7].into_iter().all(same_task) {
            return false;
        }
        match (self.ours.get(theirs), self.theirs.get(ours)) {
            (None, None) => {
                self.bind(theirs, ours);
                true
            }
            (Some(known), _) => known == ours,
            (None, Some(_)) => false,
        }
    }
}

/// Equal, where `<…>` in the recording stands for what was taken out of it.
fn alike(theirs: &str, ours: &str) -> bool {
    if theirs == ours {
        return true;
    }
    if !theirs.contains('<') && !theirs.contains("SHA-256") {
        return false;
    }
    let hole = Regex::new(r"<[a-z -]+>|\(32 bytes, SHA-256\)").unwrap();
    if !hole.is_match(theirs) {
        return false;
    }
    let mut pattern = String::from("(?s)^");
    let mut at = 0;
    for found in hole.find_iter(theirs) {
        pattern.push_str(&regex::escape(&theirs[at..found.start()]));
        pattern.push_str(".*");
        at = found.end();
    }
    pattern.push_str(&regex::escape(&theirs[at..]));
    pattern.push('$');
    theirs.starts_with("AA:BB:..") || Regex::new(&pattern).unwrap().is_match(ours)
}
