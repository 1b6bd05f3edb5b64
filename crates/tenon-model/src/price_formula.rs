//! What an instance type counts as that has no price of its own: so much for a core, so much for a gigabyte.

use crate::instance_type::CapacityType;
use crate::price::Price;
use crate::resources::{CPU, MEMORY, Resources};

/// Bytes in a gigabyte as prices count them.
const GIGABYTE: f64 = 1e9;

/// The formula. By default the reference's: 0.025 for a core, 0.001 for a gigabyte, half for spot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriceFormula {
    /// For a core.
    pub per_cpu: f64,
    /// For a billion bytes of memory.
    pub per_gigabyte: f64,
    /// What the sum is multiplied with for spot.
    pub spot_factor: f64,
}

impl Default for PriceFormula {
    fn default() -> PriceFormula {
        PriceFormula { per_cpu: 0.025, per_gigabyte: 0.001, spot_factor: 0.5 }
    }
}

/// Why a text is no part of a price.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` must be a non-negative number, such as 0.025")]
pub struct PriceError(String);

impl PriceFormula {
    /// The price of a machine with these amounts.
    pub fn price(&self, capacity: &Resources, capacity_type: CapacityType) -> Price {
        #[expect(clippy::cast_precision_loss, reason = "a price is not exact to more than fifteen digits")]
        let (cores, bytes) = (capacity.get(CPU).milli_value() as f64 / 1e3, capacity.get(MEMORY).value() as f64);
        let full = self.per_cpu * cores + self.per_gigabyte * bytes / GIGABYTE;
        Price::new(if capacity_type == CapacityType::Spot { full * self.spot_factor } else { full })
    }

    /// A part of the formula as a flag or a file spells it: finite, and not less than nothing.
    pub fn part(text: &str) -> Result<f64, PriceError> {
        let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| PriceError(text.trim().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Quantity;

    fn size() -> Resources {
        Resources::default().with(CPU, Quantity::milli(1_500)).with(MEMORY, Quantity::whole(4_000_000_000))
    }

    #[test]
    fn the_default_is_the_formula_of_the_reference() {
        let of = |kind| PriceFormula::default().price(&size(), kind).value();
        assert!((of(CapacityType::OnDemand) - 0.0415).abs() < 1e-12);
        assert!((of(CapacityType::Reserved) - 0.0415).abs() < 1e-12);
        assert!((of(CapacityType::Spot) - 0.02075).abs() < 1e-12);
    }

    #[test]
    fn every_part_may_be_another() {
        let formula = PriceFormula { per_cpu: 2.0, per_gigabyte: 0.5, spot_factor: 0.1 };
        assert!((formula.price(&size(), CapacityType::OnDemand).value() - 5.0).abs() < 1e-12);
        assert!((formula.price(&size(), CapacityType::Spot).value() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_part_is_a_finite_number_that_is_not_negative() {
        assert_eq!(PriceFormula::part(" 0.03 "), Ok(0.03));
        assert_eq!(PriceFormula::part("0"), Ok(0.0));
        for text in ["-1", "inf", "NaN", "1e999", "cheap", ""] {
            let said = PriceFormula::part(text).unwrap_err().to_string();
            assert!(said.contains(&format!("`{text}` must be a non-negative number")), "{said}");
        }
    }
}
