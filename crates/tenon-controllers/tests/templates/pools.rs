//! The resource pool of VM templates: into it, to another one, and out of it again.

use serde_json::json;

use crate::claim::site::Death;
use crate::templates::site::{Life, Site, ready, template};

fn pool(name: Option<&str>) -> serde_json::Value {
    json!({ "spec": { "resourcePool": name } })
}

#[tokio::test(start_paused = true)]
async fn a_template_leaves_the_pool_that_the_spec_had_put_it_into() {
    let site = Site::with(&["pve1"]).await;
    site.estate.add_pool("team");
    site.estate.add_pool("other");
    let mut object = template("local");
    object["spec"]["resourcePool"] = json!("team");
    site.create(object).await;
    site.run(ready(1)).await;
    let present = || site.estate.vm(1000).unwrap().pool;
    assert_eq!(present().as_deref(), Some("team"));
    site.change(pool(None)).await;
    site.passes(5).await;
    assert_eq!(present(), None);
    site.change(pool(Some("team"))).await;
    site.passes(5).await;
    site.change(pool(Some("other"))).await;
    site.passes(5).await;
    assert_eq!(present().as_deref(), Some("other"));
    site.change(pool(None)).await;
    site.passes(5).await;
    assert_eq!(present(), None);
    assert!(ready(1)(&Some(site.builds().await)) && site.builds().await[0].pool.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_people_chose_is_left_to_them() {
    let site = Site::with(&["pve1"]).await;
    site.estate.add_pool("theirs");
    site.estate.add_pool("team");
    site.create(template("local")).await;
    site.run(ready(1)).await;
    let pve = site.proxmox(&Life::until(Death::Never));
    let put = async |pool: &str| {
        pve.change_pool(pool, &["1000".parse().unwrap()], tenon_pve::PoolChange::Move).await.unwrap();
    };
    put("theirs").await;
    site.change(json!({ "spec": { "onBoot": true } })).await;
    site.passes(5).await;
    assert_eq!(site.estate.vm(1000).unwrap().pool.as_deref(), Some("theirs"));
    // They move it out of the pool that the spec named, just before the spec names none.
    site.change(pool(Some("team"))).await;
    site.passes(5).await;
    put("theirs").await;
    site.change(pool(None)).await;
    site.passes(5).await;
    assert_eq!(site.estate.vm(1000).unwrap().pool.as_deref(), Some("theirs"));
}
