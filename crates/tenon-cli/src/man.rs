//! `tenon reference man`: the manual pages, one for each verb, for packages.

use anyhow::Context as _;
use clap::Command;

/// The names of all pages, one a line; or the page of this name.
pub(crate) fn generated(page: Option<&str>, command: &Command) -> anyhow::Result<String> {
    let mut pages = Vec::new();
    let mut root = command.clone();
    root.build();
    collect(&root, &mut pages);
    let Some(page) = page else {
        return Ok(pages.iter().map(|(name, _)| format!("{name}\n")).collect());
    };
    let found = pages.into_iter().find(|(name, _)| name == page);
    let (_, command) = found.with_context(|| format!("there is no manual page `{page}`; see `tenon reference man`"))?;
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text).with_context(|| format!("cannot write manual page {page}"))?;
    String::from_utf8(text).with_context(|| format!("manual page {page} is not UTF-8 text"))
}

/// A command and those below it, by the name of the page.
fn collect(command: &Command, pages: &mut Vec<(String, Command)>) {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    pages.push((format!("{name}.1"), command.clone()));
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help") {
        collect(verb, pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Command {
        let below = Command::new("status").about("Show it.");
        let verb = Command::new("template").about("About templates.").subcommand(below);
        let hidden = Command::new("reference").hide(true);
        Command::new("tenon").about("An autoscaler.").subcommand(verb).subcommand(hidden)
    }

    #[test]
    fn every_verb_has_a_page_and_a_hidden_one_has_none() {
        let names = generated(None, &program()).unwrap();
        assert_eq!(names, "tenon.1\ntenon-template.1\ntenon-template-status.1\n");
        for name in names.lines() {
            let page = generated(Some(name), &program()).unwrap();
            assert!(page.contains(".TH ") && page.contains(".SH NAME"), "{page}");
        }
        assert!(generated(Some("tenon-reference.1"), &program()).is_err());
    }
}
