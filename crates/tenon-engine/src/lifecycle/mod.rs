//! What becomes of one NodeClaim, one launch, one static pool, one drain, one disruption command: each a step at a time.

pub mod adoption;
pub mod claim;
pub mod disruption_command;
pub mod drain;
pub mod launch;
mod launch_clone;
pub mod reboot;
pub mod registration_health;
pub mod static_pool;
mod static_victims;
pub mod template;
mod template_end;
mod template_image;
mod template_set;
mod template_sight;

pub use static_pool::StaticCounts;
pub use static_victims::{Sparing, StaticNode, StaticPod, StaticStage, lifetime_remaining};
pub use template_set::{Arranged, TemplateTarget, WantedTemplates, arrange, is_host_gone};
