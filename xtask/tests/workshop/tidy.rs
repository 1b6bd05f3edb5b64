//! Each rule of `tidy`, fed with a tree that breaks it.

use crate::fixture::{Fixture, PURE_CLIPPY, text, tidy, tidy_command};

#[test]
fn this_tree_is_tidy() -> anyhow::Result<()> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    // Whoever runs all tests has built `tenon` with them; a second build, with other features, takes a minute.
    let built = std::env::var_os("TENON_BUILT").map(|tenon| ["--tenon".into(), tenon]);
    let output = tidy_command(&root).args(built.into_iter().flatten()).output()?;
    assert!(output.status.success(), "{}", text(&output));
    Ok(())
}

#[test]
fn a_clean_tree_is_tidy() -> anyhow::Result<()> {
    Fixture::new()?.expect_tidy()
}

#[test]
fn an_edge_that_points_outward_is_refused() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.add_crate("tenon-cli", "")?;
    tree.add_crate("tenon-pve", "[dependencies]\ntenon-cli = { path = \"../tenon-cli\" }\n")?;
    tree.expect_problem("crates/tenon-pve/Cargo.toml", "`tenon-pve` must not depend on `tenon-cli`")
}

#[test]
fn a_build_edge_counts_like_a_normal_one() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.add_crate("tenon-cli", "")?;
    tree.add_crate("tenon-pve", "[build-dependencies]\ntenon-cli = { path = \"../tenon-cli\" }\n")?;
    tree.expect_problem("crates/tenon-pve/Cargo.toml", "`tenon-pve` must not depend on `tenon-cli`")
}

#[test]
fn tests_may_stand_on_the_simulator_but_the_simulator_not_on_the_testbed() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.add_crate("testbed", "")?;
    tree.add_crate("tenon-sim", "")?;
    tree.add_crate("tenon-pve", "[dev-dependencies]\ntenon-sim = { path = \"../tenon-sim\" }\n")?;
    tree.expect_tidy()?;
    tree.add_crate("tenon-sim", "[dev-dependencies]\ntestbed = { path = \"../testbed\" }\n")?;
    tree.expect_problem("crates/tenon-sim/Cargo.toml", "`tenon-sim` must not depend on `testbed`")
}

#[test]
fn the_product_builds_without_the_simulator() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.add_crate("tenon-sim", "")?;
    let edge = |more: &str| format!("[dependencies]\ntenon-sim = {{ path = \"../tenon-sim\"{more} }}\n");
    tree.add_crate("tenon-cli", &edge(", optional = true"))?;
    tree.expect_tidy()?;
    tree.add_crate("tenon-cli", &edge(""))?;
    let words = "`tenon-cli` may use `tenon-sim` only as an optional dependency";
    tree.expect_problem("crates/tenon-cli/Cargo.toml", words)?;
    tree.add_crate("tenon-cli", "")?;
    tree.add_crate("tenon-controllers", &edge(", optional = true"))?;
    tree.expect_problem("crates/tenon-controllers/Cargo.toml", "`tenon-controllers` must not depend on `tenon-sim`")
}

#[test]
fn a_simulator_that_reads_what_it_is_held_to_is_refused() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.add_crate("tenon-sim", "")?;
    tree.expect_tidy()?;
    tree.write("crates/tenon-sim/src/lib.rs", "//! Answers.\n\nconst A: &str = include_str!(\"../answers.txt\");\n")?;
    tree.expect_problem("crates/tenon-sim/src/lib.rs", "must not read the recordings")
}

#[test]
fn a_pure_crate_must_not_know_a_runtime() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.add_crate("tenon-model", "[dependencies]\ntokio = \"1\"\n")?;
    tree.expect_problem("crates/tenon-model/Cargo.toml", "`tenon-model` must not depend on outside crate `tokio`")
}

#[test]
fn a_crate_nobody_planned_is_refused() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.add_crate("tenon-surprise", "")?;
    tree.expect_problem("crates/tenon-surprise/Cargo.toml", "has no row in the table")
}

#[test]
fn a_pure_crate_without_a_ban_is_refused() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    let lax = PURE_CLIPPY.replace("std::time::SystemTime::now", "std::time::SystemTime::elapsed");
    tree.write("crates/tenon-model/clippy.toml", &lax)?;
    tree.expect_problem("crates/tenon-model/clippy.toml", "does not ban std::time::SystemTime::now")
}

#[test]
fn a_pure_crate_repeats_the_rules_of_the_root() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.write("crates/tenon-model/clippy.toml", &PURE_CLIPPY.replace("allow-unwrap-in-tests = true\n", ""))?;
    tree.expect_problem("crates/tenon-model/clippy.toml", "`allow-unwrap-in-tests` of the root")
}

#[test]
fn a_file_named_for_being_a_drawer_is_refused() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.write("crates/tenon-model/src/lib.rs", "//! Values.\nmod utils;\n")?;
    tree.write("crates/tenon-model/src/utils.rs", "//! Everything.\n")?;
    tree.expect_problem("crates/tenon-model/src/utils.rs", "`utils` does not say what the file is for")
}

#[test]
fn a_file_no_module_declares_is_refused() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.write("crates/tenon-model/src/forgotten.rs", "//! Once of use.\n")?;
    tree.expect_problem("crates/tenon-model/src/forgotten.rs", "no `mod` reaches this file")
}

#[test]
fn files_are_found_through_every_way_to_declare_a_module() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    let src = "crates/tenon-model/src";
    tree.write(
        &format!("{src}/lib.rs"),
        "//! a\nmod a;\nmod b;\nmod inline { mod d; }\n#[path = \"odd/place.rs\"]\nmod e;\nmod r#type;\nconst N: u8 = include!(\"number.rs\");\n",
    )?;
    tree.write(&format!("{src}/a.rs"), "//! a\nmod child;\n")?;
    tree.write(&format!("{src}/a/child.rs"), "//! a\n")?;
    tree.write(&format!("{src}/b/mod.rs"), "//! b\nmod child;\n")?;
    tree.write(&format!("{src}/b/child.rs"), "//! b\n")?;
    tree.write(&format!("{src}/inline/d.rs"), "//! d\n")?;
    tree.write(&format!("{src}/odd/place.rs"), "//! e\n#[path = \"../up.rs\"]\nmod up;\n")?;
    tree.write(&format!("{src}/up.rs"), "//! up\n")?;
    tree.write(&format!("{src}/type.rs"), "//! type\n")?;
    tree.write(&format!("{src}/number.rs"), "1\n")?;
    tree.write("crates/tenon-model/tests/values/main.rs", "//! t\nmod more;\n")?;
    tree.write("crates/tenon-model/tests/values/more.rs", "//! t\n")?;
    tree.expect_tidy()
}

#[test]
fn a_test_may_keep_files_that_do_not_parse_and_a_tree_may_link_to_folders() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.write("crates/tenon-model/tests/food/broken.rs", "fn {\n")?;
    std::os::unix::fs::symlink("crates", tree.path().join("link"))?;
    tree.git(&["add", "--all"])?;
    tree.expect_tidy()
}

#[test]
fn fuzz_targets_in_a_workspace_of_their_own_are_compiled_too() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    let manifest = "[workspace]\n[package]\nname = \"tenon-fuzz\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
                    [[bin]]\nname = \"quantity\"\npath = \"fuzz_targets/quantity.rs\"\n";
    tree.write("fuzz/Cargo.toml", manifest)?;
    tree.write("fuzz/fuzz_targets/quantity.rs", "//! Quantities.\nfn main() {}\n")?;
    tree.expect_tidy()
}

#[test]
fn a_file_that_does_not_say_what_it_answers_is_refused() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.write("crates/tenon-model/src/lib.rs", "pub fn silent() {}\n")?;
    tree.expect_problem("crates/tenon-model/src/lib.rs:1", "open the file with `//! `")
}

#[test]
fn a_path_of_somebodys_machine_is_refused() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    for (path, word) in [("docs/a.md", concat!("/ho", "me/")), ("b.sh", concat!("../", "shared"))] {
        tree.write(path, &format!("first line\nsee {word}x\n"))?;
        tree.expect_problem(&format!("{path}:2"), word)?;
        std::fs::remove_file(tree.path().join(path))?;
    }
    tree.write("docs/a.md", &format!("Keys go into {}karpenter/.ssh (guest path).\n", concat!("/ho", "me/")))?;
    tree.expect_tidy()
}

#[test]
fn a_reason_that_is_in_no_table_is_refused() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.add_crate("tenon-controllers", "")?;
    let drain = "fn f() { Verdict::holds(\"Drained\"); }\n";
    tree.write("crates/tenon-controllers/tests/drain.rs", &format!("//! Tests.\n{drain}"))?;
    tree.expect_tidy()?;
    tree.write("crates/tenon-controllers/src/lib.rs", &format!("//! Drains.\n{drain}"))?;
    tree.expect_problem("crates/tenon-controllers/src/lib.rs:2", "crates/tenon-api/src/condition_reasons.rs")
}

#[test]
fn a_generated_file_that_is_missing_or_stale_is_refused() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.add_crate("tenon", "")?;
    std::fs::remove_file(tree.path().join("crates/tenon/src/lib.rs"))?;
    tree.write("crates/tenon/src/main.rs", "//! Prints a page.\nfn main() { println!(\"today\"); }\n")?;
    // The other files that the binary alone is asked for.
    for page in ["kubernetes-rights", "metrics", "alerts"] {
        tree.write(&format!("docs/reference/{page}.md"), "today\n")?;
    }
    tree.write("charts/tenon/templates/roles.yaml", "today\n")?;
    let marks = ("<!-- Generated by `cargo xtask generate`. Do not edit. -->", "<!-- End of the generated part. -->");
    tree.write("SECURITY.md", &format!("{}\ntoday\n{}\n", marks.0, marks.1))?;
    tree.expect_problem("docs/reference/cli.md", "is missing: run `cargo xtask generate`")?;
    tree.write("docs/reference/cli.md", "yesterday\n")?;
    tree.expect_problem("docs/reference/cli.md", "is stale: run `cargo xtask generate`")?;
    tree.write("docs/reference/cli.md", "today\n")?;
    tree.expect_tidy()
}

#[test]
fn a_tree_that_cannot_be_read_is_an_error_not_a_pass() -> anyhow::Result<()> {
    let empty = tempfile::tempdir()?;
    let output = tidy(empty.path())?;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("not a git repository"), "{}", text(&output));
    Ok(())
}
