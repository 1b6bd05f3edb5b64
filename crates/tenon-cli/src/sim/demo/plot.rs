//! What happens in the demo, one act after the other: pods come, pods run, pods go, nothing is left.

use super::scene::Scene;
use super::site::Site;
use super::workload;

/// How long the audience looks at a cluster in which everything runs, on the demo's clock.
const REST_S: f64 = 5.0;

/// Where the plot stands.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Act {
    Begin,
    Up,
    Rest { until_s: f64 },
    Down,
}

/// The plot.
pub(crate) struct Plot {
    act: Act,
    pods: u32,
}

impl Plot {
    pub(crate) fn new(pods: u32) -> Plot {
        Plot { act: Act::Begin, pods }
    }

    /// Goes on if it is time to; whether it is over.
    pub(crate) async fn go_on(&mut self, site: &Site, scene: &Scene) -> anyhow::Result<bool> {
        let now_s = scene.at.as_secs_f64();
        self.act = match self.act {
            Act::Begin => {
                workload::apply(site.client(), self.pods).await?;
                Act::Up
            }
            Act::Up if scene.running == self.pods as usize => Act::Rest { until_s: now_s + REST_S },
            Act::Rest { until_s } if now_s >= until_s => {
                workload::scale_to_zero(site.client()).await?;
                Act::Down
            }
            Act::Down if scene.is_empty() => return Ok(true),
            act => act,
        };
        Ok(false)
    }
}
