//! Flags that say what instance types cost which have no price of their own.

use anyhow::Context as _;
use clap::Args;
use tenon_model::PriceFormula;

/// The price of an instance type: so much for a CPU, so much for a gigabyte of memory.
#[derive(Debug, Args)]
pub(crate) struct PriceArgs {
    /// Price of a CPU, for instance types without a price of their own. Prices decide which instance type is chosen; only their
    /// proportions matter.
    #[arg(long, value_name = "NUMBER", env = "PRICE_PER_CPU", default_value = "0.025", allow_hyphen_values = true)]
    price_per_cpu: String,
    /// Price of a gigabyte (10^9 bytes) of memory, for instance types without a price of their own.
    #[arg(long, value_name = "NUMBER", env = "PRICE_PER_GB", default_value = "0.001", allow_hyphen_values = true)]
    price_per_gb: String,
    /// Factor for the price of instance types with capacity type spot that have no price of their own.
    #[arg(long, value_name = "NUMBER", env = "SPOT_PRICE_FACTOR", default_value = "0.5", allow_hyphen_values = true)]
    spot_price_factor: String,
}

impl PriceArgs {
    /// The formula. An empty text means the default, because charts write one.
    pub(crate) fn formula(&self) -> anyhow::Result<PriceFormula> {
        let standard = PriceFormula::default();
        Ok(PriceFormula {
            per_cpu: part("--price-per-cpu", &self.price_per_cpu, standard.per_cpu)?,
            per_gigabyte: part("--price-per-gb", &self.price_per_gb, standard.per_gigabyte)?,
            spot_factor: part("--spot-price-factor", &self.spot_price_factor, standard.spot_factor)?,
        })
    }
}

fn part(flag: &str, text: &str, standard: f64) -> anyhow::Result<f64> {
    if text.trim().is_empty() {
        return Ok(standard);
    }
    PriceFormula::part(text).with_context(|| format!("cannot use {flag}"))
}
