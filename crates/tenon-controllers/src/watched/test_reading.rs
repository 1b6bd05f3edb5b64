//! Reads watches in tests, so that their stores are filled.

use futures::StreamExt as _;
use tenon_api::NodeClaim;
use tokio::task::JoinSet;

use super::{Changes, Watches};

impl Watches {
    /// Reads everything but claims.
    pub(crate) fn read_but_claims(self) -> (JoinSet<()>, Changes<NodeClaim>) {
        let Watches { pods, nodes, daemons, pools, classes, templates, claims, related } = self;
        let mut watching = JoinSet::new();
        watching.spawn(pods.for_each(async |_| {}));
        watching.spawn(nodes.for_each(async |_| {}));
        watching.spawn(daemons.for_each(async |_| {}));
        watching.spawn(pools.for_each(async |_| {}));
        watching.spawn(classes.for_each(async |_| {}));
        watching.spawn(templates.for_each(async |_| {}));
        for watch in related {
            watching.spawn(watch.changes.for_each(async |_| {}));
        }
        (watching, claims)
    }

    /// Reads everything.
    pub(crate) fn read(self) -> JoinSet<()> {
        let (mut watching, claims) = self.read_but_claims();
        watching.spawn(claims.for_each(async |_| {}));
        watching
    }
}
