//! Which addresses are the cards of a new VM given?

use std::collections::BTreeSet;
use std::net::IpAddr;

use tenon_model::{AddressPool, CardAddresses, CardWish, GivenAddress, Source6};

/// An address that cannot be given, because all of its kind are taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no free IP address for card net{card} in {ranges}: all are in use or excluded; widen the range, or remove Nodes or VMs"
)]
pub struct NoAddress {
    /// The number of the card.
    pub card: u32,
    /// The ranges that were looked through.
    pub ranges: String,
}

/// The addresses of a VM's cards: all of them or none. Nothing that is `taken` is given, and nothing twice.
pub fn give(taken: &BTreeSet<IpAddr>, wishes: &[CardWish]) -> Result<Vec<CardAddresses>, NoAddress> {
    let mut own = Own { taken, given: BTreeSet::new() };
    wishes.iter().map(|wish| own.card(wish)).collect()
}

/// What one VM is given, beside what everybody has.
struct Own<'a> {
    taken: &'a BTreeSet<IpAddr>,
    given: BTreeSet<IpAddr>,
}

impl Own<'_> {
    fn card(&mut self, wish: &CardWish) -> Result<CardAddresses, NoAddress> {
        let card = wish.card;
        let v4 = wish.v4.as_ref().map(|pool| self.next(card, pool)).transpose()?;
        let v6 = match &wish.v6 {
            None => None,
            Some(Source6::Pool(pool)) => Some(self.next(card, pool)?),
            Some(Source6::FromMac { network, gateway }) => Some(GivenAddress { address: *network, gateway: *gateway }),
        };
        Ok(CardAddresses { card, v4, v6 })
    }

    fn next(&mut self, card: u32, pool: &AddressPool) -> Result<GivenAddress, NoAddress> {
        let is_taken = |address| self.taken.contains(&address) || self.given.contains(&address);
        let address = pool.next_free(&is_taken).ok_or_else(|| NoAddress { card, ranges: pool.words() })?;
        self.given.insert(address.address());
        Ok(GivenAddress { address, gateway: pool.gateway })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(range: &str) -> AddressPool {
        AddressPool { ranges: vec![range.parse().unwrap()], ..AddressPool::default() }
    }

    #[test]
    fn two_cards_in_one_network_get_two_addresses() {
        let wish = |card| CardWish { card, v4: Some(pool("10.0.0.0/24")), v6: None };
        let given = give(&BTreeSet::new(), &[wish(0), wish(1)]).unwrap();
        let texts: Vec<_> = given.iter().map(|card| card.v4.as_ref().unwrap().address.to_string()).collect();
        assert_eq!(texts, ["10.0.0.1/24", "10.0.0.2/24"]);
    }

    #[test]
    fn a_card_that_cannot_be_given_both_families_is_given_none() {
        let v6 = Some(Source6::Pool(pool("fd00::1/64")));
        let wish = CardWish { card: 1, v4: Some(pool("10.0.0.0/24")), v6 };
        let taken = ["fd00::1".parse().unwrap()].into();
        let missing = give(&taken, &[wish]).unwrap_err();
        assert_eq!(missing, NoAddress { card: 1, ranges: "fd00::1/64".to_owned() });
        assert!(missing.to_string().contains("net1") && missing.to_string().contains("fd00::1/64"));
    }

    #[test]
    fn an_address_made_from_the_hardware_address_takes_none() {
        let network = "fd00::/64".parse().unwrap();
        let wish = CardWish { card: 0, v4: None, v6: Some(Source6::FromMac { network, gateway: None }) };
        let given = give(&BTreeSet::new(), &[wish]).unwrap();
        assert_eq!(given[0].addresses().count(), 0);
        assert!(given[0].v6.as_ref().unwrap().address.is_network());
    }
}
