//! The size rule of `tidy` and its ratchet.

use crate::fixture::Fixture;

const LIB: &str = "crates/tenon-model/src/lib.rs";
const LIST: &str = "xtask/size-exceptions.toml";

fn file_of(lines: usize) -> String {
    format!("//! Long.\n{}", "// a line\n".repeat(lines - 1))
}

fn function_of(lines: usize) -> String {
    format!("//! Long.\npub fn long() {{\n{}}}\n", "    // a line\n".repeat(lines - 2))
}

#[test]
fn an_oversized_file_is_refused() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.write(LIB, &file_of(400))?;
    tree.expect_tidy()?;
    tree.write(LIB, &file_of(401))?;
    tree.expect_problem(LIB, "has 401 lines; 400 are allowed")
}

#[test]
fn tests_inside_a_file_do_not_count() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "    // a case\n".repeat(300));
    tree.write(LIB, &format!("{}{tests}", file_of(390)))?;
    tree.expect_tidy()
}

#[test]
fn an_oversized_function_is_refused() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.write(LIB, &function_of(70))?;
    tree.expect_tidy()?;
    tree.write(LIB, &function_of(71))?;
    tree.expect_problem(&format!("{LIB}:2"), "`crates/tenon-model/src/lib.rs::long` has 71 lines")
}

#[test]
fn a_function_with_too_many_parameters_is_refused() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.write(LIB, "//! Wide.\npub struct S;\nimpl S { pub fn f(&self, a: u8, b: u8, c: u8, d: u8) {} }\n")?;
    tree.expect_tidy()?;
    // What a trait asks for is not ours to choose.
    let implementation =
        "//! Wide.\npub struct S;\nimpl Wide for S { fn f(&self, a: u8, b: u8, c: u8, d: u8, e: u8) {} }\n";
    tree.write(LIB, implementation)?;
    tree.expect_tidy()?;
    tree.write(LIB, "//! Wide.\npub fn wide(a: u8, b: u8, c: u8, d: u8, e: u8) {}\n")?;
    tree.expect_problem(&format!("{LIB}:2"), "`wide` takes 5 parameters")
}

#[test]
fn tables_and_generated_files_are_exempt() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.write(LIB, &file_of(500).replace("//! Long.", "//! Table: every instance type."))?;
    tree.expect_tidy()
}

#[test]
fn an_exception_excuses_exactly_its_size() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.write(LIST, &format!("[files]\n\"{LIB}\" = 410\n"))?;
    tree.write(LIB, &file_of(410))?;
    tree.expect_tidy()?;
    tree.write(LIB, &file_of(411))?;
    tree.expect_problem(LIB, "grew from 410 to 411")?;
    tree.write(LIB, &file_of(405))?;
    tree.expect_problem(LIB, "shrank from 410 to 405")?;
    tree.write(LIB, &file_of(300))?;
    tree.expect_problem(LIST, "small enough now: remove the entry")
}

#[test]
fn the_list_of_exceptions_never_grows_even_if_the_growth_is_committed() -> anyhow::Result<()> {
    let tree = Fixture::new()?;
    tree.write(LIB, &file_of(410))?;
    tree.write(LIST, &format!("[files]\n\"{LIB}\" = 410\n"))?;
    tree.commit()?;
    tree.expect_tidy()?;
    tree.write(LIB, &file_of(420))?;
    tree.write(LIST, &format!("[files]\n\"{LIB}\" = 420\n"))?;
    tree.expect_problem(LIST, "was added or raised")?;
    tree.commit()?;
    tree.expect_problem(LIST, "was added or raised")?;
    tree.write(LIB, &file_of(405))?;
    tree.write(LIST, &format!("[files]\n\"{LIB}\" = 405\n"))?;
    tree.expect_tidy()
}
