//! The programs people use, against the control plane.

use std::path::Path;
use std::process::Command;

use anyhow::ensure;
use testbed::proof::with_programs;
use testbed::{Found, Program, Testbed};

use crate::support::shared_testbed;

/// Where a program is, for a test that needs it.
fn program(program: Program) -> anyhow::Result<Option<Found>> {
    Ok(with_programs(&[program])?.into_iter().flatten().next())
}

/// What a program prints when it is pointed at the testbed.
fn run(testbed: &Testbed, program: &Path, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(args).envs(testbed.environment()).output()?;
    ensure!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn kubectl_can_read_the_version_the_server_was_stamped_with() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let Some(kubectl) = program(Program::Kubectl)? else { return Ok(()) };
    let Some(apiserver) = program(Program::KubeApiserver)? else { return Ok(()) };
    let versions = run(testbed, &kubectl.path, &["version", "-o", "json"])?;
    let versions: serde_json::Value = serde_json::from_str(&versions)?;
    assert_eq!(versions["serverVersion"]["gitVersion"], format!("v{}", apiserver.version));
    assert_eq!(versions["serverVersion"]["minor"], apiserver.version.minor.to_string());
    assert_eq!(versions["clientVersion"]["gitVersion"], format!("v{}", kubectl.version));
    Ok(())
}

#[test]
fn helm_installs_a_chart_that_the_server_accepts() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let Some(helm) = program(Program::Helm)? else { return Ok(()) };
    let chart = tempfile::tempdir()?;
    std::fs::create_dir(chart.path().join("templates"))?;
    std::fs::write(chart.path().join("Chart.yaml"), "apiVersion: v2\nname: probe\nversion: 0.1.0\n")?;
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n";
    std::fs::write(chart.path().join("templates/map.yaml"), template)?;
    let chart = chart.path().to_string_lossy().into_owned();
    run(testbed, &helm.path, &["install", "probe", &chart, "--namespace", "helm-probe", "--create-namespace"])?;
    let releases = run(testbed, &helm.path, &["list", "--namespace", "helm-probe", "--short"])?;
    assert_eq!(releases.trim(), "probe");
    run(testbed, &helm.path, &["uninstall", "probe", "--namespace", "helm-probe"])?;
    Ok(())
}
