//! What instance types without a price of their own cost: three numbers, as settings.

use serde_json::Value;
use tenon_model::PriceFormula;

use super::PlanOptions;

pub(super) fn per_cpu(options: &mut PlanOptions, value: &Value) -> Result<(), String> {
    options.prices.per_cpu = part(value)?;
    Ok(())
}

pub(super) fn per_gb(options: &mut PlanOptions, value: &Value) -> Result<(), String> {
    options.prices.per_gigabyte = part(value)?;
    Ok(())
}

pub(super) fn spot_factor(options: &mut PlanOptions, value: &Value) -> Result<(), String> {
    options.prices.spot_factor = part(value)?;
    Ok(())
}

/// A number, written as such or as a text.
fn part(value: &Value) -> Result<f64, String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    PriceFormula::part(&text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    #[test]
    fn prices_are_settings_under_each_of_their_names() {
        let wanted = PriceFormula { per_cpu: 0.03, per_gigabyte: 0.002, spot_factor: 0.0 };
        for text in [
            "pricePerCPU: 0.03\npricePerGB: 0.002\nspotPriceFactor: 0\n",
            "price-per-cpu: \"0.03\"\nprice-per-gb: 0.002\nspot-price-factor: 0\n",
            "PRICE_PER_CPU: 0.03\nPRICE_PER_GB: '0.002'\nSPOT_PRICE_FACTOR: 0\n",
        ] {
            assert_eq!(read(text).unwrap().prices, wanted, "{text}");
        }
        assert_eq!(read("").unwrap().prices, PriceFormula::default());
    }

    #[test]
    fn what_is_no_price_is_named() {
        let said = read("cpuRequests: 1000\npricePerCPU: -0.5\n").unwrap_err().to_string();
        assert_eq!(said, "line 2: pricePerCPU: `-0.5` must be a non-negative number, such as 0.025");
        let mut options = PlanOptions::default();
        assert!(options.set("spot-price-factor", "half").unwrap_err().to_string().contains("`half`"));
        options.set("price-per-gb", "").unwrap();
        assert_eq!(options, PlanOptions::default());
    }
}
