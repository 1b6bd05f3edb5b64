//! Is a listing that says what the one before said the same one?

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tenon_pve::{Client, Endpoint, Token, Transport};
use tenon_sim::{Estate, EstateConfig, TemplateSpec};

use crate::regions::Regions;

#[tokio::test(start_paused = true)]
async fn a_listing_that_says_the_same_is_the_one_before_and_no_older_than_it_says() {
    let (estate, never): (_, fn(&Infallible) -> bool) = (Estate::new(EstateConfig::default()), |_| false);
    let token = Token::new("tenon@pve!sim", "11111111-2222-3333-4444-555555555555").unwrap();
    let endpoint = Endpoint::new("https://pve.example:8006").unwrap();
    let client = Client::new(vec![endpoint], Transport::over(estate.service(), never), token);
    let regions = Regions::from(BTreeMap::from([("lab".to_owned(), client)]));
    let look = async || regions.look_now().await.regions["lab"].clone().unwrap();
    let (mut last, mut changes) = (look().await, 0);
    for round in 0..60 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        if round == 30 {
            estate.add_template(&TemplateSpec::default()).unwrap();
        }
        let next = look().await;
        changes += usize::from(!Arc::ptr_eq(&last, &next));
        last = next;
        assert!(regions.ages()["lab"] < Duration::from_secs(1), "it was listed just now, the same or not");
    }
    assert!((1..=4).contains(&changes), "{changes} of 60 listings were new");
    assert_eq!(last.guests.len(), 1);
}
