//! May an image be deleted right now? Its file has a name and no owner, and another ProxmoxTemplate may have begun to be made
//! from it since the pass began: so its users are read again before it goes.

use kube::ResourceExt;
use kube::api::{Api, ListParams};
use tenon_api::ProxmoxTemplate;
use tenon_engine::template::TemplateChange;
use tenon_model::{TemplateBuild, TemplateStep};

use super::one::Run;
use super::pass::recorded;

impl Run<'_> {
    /// Those of the changes that may be made. An image that came into use meanwhile stays until the next look.
    pub(super) async fn permitted(&self, changes: Vec<(usize, TemplateChange)>) -> Vec<(usize, TemplateChange)> {
        if !changes.iter().any(|(_, change)| *change == TemplateChange::DeleteImage) {
            return changes;
        }
        let others = self.others_now().await;
        let may = |(index, change): &(usize, TemplateChange)| match (change, self.builds.get(*index), &others) {
            (TemplateChange::DeleteImage, Some(build), Some(others)) => self.is_free(build, others),
            // Without the others nothing is known.
            (TemplateChange::DeleteImage, _, _) => false,
            _ => true,
        };
        changes.into_iter().filter(may).collect()
    }

    /// Whether nothing depends on the file: when it goes for good, no other build; when it is replaced, no import.
    fn is_free(&self, build: &TemplateBuild, others: &[TemplateBuild]) -> bool {
        let book = self.image_book(others);
        if build.step == TemplateStep::Discard { book.imported_by(build).is_none() } else { !book.is_needed(build) }
    }

    /// The builds of every other object, as they are written down now.
    async fn others_now(&self) -> Option<Vec<TemplateBuild>> {
        let api: Api<ProxmoxTemplate> = Api::all(self.context.workload.clone());
        let listed = api.list(&ListParams::default()).await;
        let listed = listed.map_err(|error| {
            let error = crate::kube_error::message(&error);
            tracing::warn!(
                template = self.work.name(),
                error,
                "cannot list ProxmoxTemplates before an image is deleted; retrying"
            );
        });
        let uid = self.work.uid();
        let others = listed.ok()?.items.into_iter().filter(|other| other.uid().unwrap_or_default() != uid);
        // A record that cannot be read may name any image.
        let builds: Result<Vec<Vec<TemplateBuild>>, _> = others.map(|other| recorded(&other)).collect();
        Some(builds.ok()?.into_iter().flatten().collect())
    }
}
