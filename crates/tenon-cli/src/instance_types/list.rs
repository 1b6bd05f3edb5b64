//! `tenon instance-types list`: what each instance type has, what of it pods can use, and what it costs.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use serde::Serialize;
use tenon_model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS};
use tenon_model::{InstanceType, Quantity, QuantityFormat, Resources};

use crate::controller::instance_types;
use crate::plan::table_text::{lay_out, price};
use crate::prices::PriceArgs;

/// List instance types: CPU, memory, disk and pods of each, what of it pods can use, and its price.
#[derive(Debug, Args)]
pub(super) struct List {
    /// JSON file with instance types; unset: the built-in instance types.
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    instance_types_file: Option<PathBuf>,
    #[command(flatten)]
    prices: PriceArgs,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Output,
}

/// How the list is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Text for people.
    #[default]
    Table,
    /// JSON for programs.
    Json,
}

/// One instance type, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    name: &'a str,
    family: &'a str,
    capacity_type: &'static str,
    capacity: BTreeMap<String, String>,
    allocatable: BTreeMap<String, String>,
    price: f64,
}

pub(super) fn run(args: &List, out: &mut dyn Write) -> anyhow::Result<()> {
    let formula = args.prices.formula()?;
    let types = instance_types(args.instance_types_file.as_deref())?.unwrap_or_else(InstanceType::built_in);
    let types: Vec<InstanceType> = types.into_iter().map(|size| size.priced_by(&formula)).collect();
    let text = match args.output {
        Output::Table => table(&types),
        Output::Json => {
            let rows: Vec<Row<'_>> = types.iter().map(row).collect();
            serde_json::to_string_pretty(&rows).context("cannot encode the instance types")? + "\n"
        }
    };
    out.write_all(text.as_bytes()).context("cannot print the instance types")
}

fn row(size: &InstanceType) -> Row<'_> {
    let amounts = |resources: &Resources| -> BTreeMap<String, String> {
        resources.iter().map(|(name, amount)| (name.to_owned(), shown(name, amount))).collect()
    };
    Row {
        name: &size.name,
        family: size.family(),
        capacity_type: size.capacity_type.as_str(),
        capacity: amounts(&size.capacity),
        allocatable: amounts(&size.allocatable()),
        price: size.price().value(),
    }
}

fn table(types: &[InstanceType]) -> String {
    let heads = [
        "NAME",
        "FAMILY",
        "CAPACITY",
        "CPU",
        "MEMORY",
        "DISK",
        "PODS",
        "ALLOCATABLE CPU",
        "ALLOCATABLE MEMORY",
        "PRICE",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for size in types {
        let (capacity, allocatable) = (&size.capacity, size.allocatable());
        let of = |resources: &Resources, name: &str| {
            if resources.names(name) { shown(name, resources.get(name)) } else { "-".to_owned() }
        };
        rows.push(vec![
            size.name.clone(),
            size.family().to_owned(),
            size.capacity_type.as_str().to_owned(),
            of(capacity, CPU),
            of(capacity, MEMORY),
            of(capacity, EPHEMERAL_STORAGE),
            of(capacity, PODS),
            of(&allocatable, CPU),
            of(&allocatable, MEMORY),
            price(size.price().value()),
        ]);
    }
    lay_out(&rows).iter().map(|line| format!("{}\n", line.trim_start())).collect()
}

/// An amount as kubectl shows it: bytes with powers of 1,024, however they were written.
fn shown(resource: &str, amount: Quantity) -> String {
    let is_bytes = resource == MEMORY || resource == EPHEMERAL_STORAGE || resource.starts_with("hugepages-");
    if is_bytes { amount.with_format(QuantityFormat::BinarySi).to_string() } else { amount.to_string() }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use clap::{CommandFactory as _, FromArgMatches as _, Parser};
    use serde_json::Value;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: List,
    }

    fn listed(args: &[&str]) -> anyhow::Result<String> {
        // The variables of whoever runs the test are not the test's.
        let command = Line::command().mut_args(|arg| arg.env(None));
        let line = Line::from_arg_matches(&command.try_get_matches_from(["tenon"].iter().chain(args))?)?;
        let mut out = Vec::new();
        run(&line.args, &mut out)?;
        Ok(String::from_utf8(out)?)
    }

    #[test]
    fn the_built_in_instance_types_are_a_table_for_people() {
        let text = listed(&[]).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines.len(), 21, "{text}");
        assert_eq!(lines[0][..3], ["NAME", "FAMILY", "CAPACITY"]);
        let small = ["c1.1VCPU-2GB", "c1", "on-demand", "1", "2Gi", "30Gi", "64", "970m", "1628Mi", "0.0271"];
        assert_eq!(lines[1], small, "{text}");
    }

    #[test]
    fn a_file_is_listed_with_its_own_prices_and_the_formula_s_for_the_rest() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(
            br#"[{"name":"big.1","capacity":{"cpu":2,"memory":"4Gi","hugepages-2Mi":"1Gi"},"price":1.5},
                {"name":"odd","capacity":{"cpu":"1500m","memory":"1G"},"capacitytype":"spot"}]"#,
        )
        .unwrap();
        let path = file.path().display().to_string();
        let json = listed(&["--instance-types-file", &path, "--price-per-cpu", "2", "--price-per-gb=1", "-o", "json"]);
        let rows: Value = serde_json::from_str(&json.unwrap()).unwrap();
        assert_eq!((&rows[0]["family"], &rows[0]["price"]), (&"big".into(), &1.5.into()), "{rows}");
        assert_eq!(rows[0]["allocatable"]["memory"], "3Gi", "{rows}");
        assert_eq!((&rows[1]["price"], &rows[1]["capacityType"]), (&2.0.into(), &"spot".into()), "{rows}");
        let table = listed(&["--instance-types-file", &path]).unwrap();
        assert!(table.lines().nth(2).unwrap().contains("  -  "), "it says nothing of a disk: {table}");
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_its_entry_and_line() {
        let said = format!("{:#}", listed(&["--instance-types-file", "/nowhere/types.json"]).unwrap_err());
        assert!(said.starts_with("cannot read instance types file /nowhere/types.json: "), "{said}");
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"[\n{\"name\":\"a\",\"capacity\":{\"cpu\":1,\"memory\":1}},\n{\"name\":\"a\",\"capacity\":{\"cpu\":1,\"memory\":1}}]").unwrap();
        let path = file.path().display().to_string();
        let said = format!("{:#}", listed(&["--instance-types-file", &path]).unwrap_err());
        let wanted = "line 3: instance type a: name: duplicate name, first used in line 2";
        assert_eq!(said, format!("cannot use instance types file {path}: {wanted}"));
    }
}
