//! Which demand of its volumes keeps a pod from a pool?

use tenon_model::{PoolRefusal, Requirements, VolumeRefusal};

use super::reasons::Asked;
use crate::base::Template;
use crate::index::{Bits, SlotIx, TemplateIx, TypeIx};
use crate::instance_types::CatalogIndex;
use crate::solver::Work;

/// The first place of the volumes that the pod and the labels of the pool allow. Nothing, if they can be used anywhere.
pub(super) fn place_of_volumes<'p>(
    template: &Template,
    index: &CatalogIndex,
    asked: &Asked<'p>,
) -> Result<Option<&'p Requirements>, VolumeRefusal> {
    let mut first = None;
    for place in asked.places {
        let mut wanted = asked.demand.clone();
        wanted.join(place);
        let with_pod = asked.demand.intersect(place).map_err(VolumeRefusal::OfPod);
        let allowed = with_pod.and_then(|()| {
            let met = template.demands.meet(&wanted, |label| index.catalog.is_well_known(label));
            met.map_err(VolumeRefusal::Labels)
        });
        match allowed {
            Ok(()) => return Ok(Some(place)),
            Err(why) => drop(first.get_or_insert(why)),
        }
    }
    first.map_or(Ok(None), Err)
}

impl Work<'_> {
    /// A pod has more volumes than any size attaches: said of the sizes that suit it but for that, if there are any.
    pub(super) fn no_place_for_volumes(
        &self,
        number: TemplateIx,
        slots: &Bits<SlotIx>,
        asked: &Asked<'_>,
    ) -> PoolRefusal {
        let (template, index) = (&self.base.templates[number], self.base.catalog_of(number));
        let suiting = index.types_suiting(asked.demand);
        let mut types: Vec<TypeIx> = slots.iter().map(|slot| index.slots[slot].type_ix).collect();
        types.retain(|size| suiting.has(*size));
        types.dedup();
        let all = &self.base.attachments;
        let found = types.iter().find_map(|size| all.too_many(template.catalog, &[*size], asked.counts));
        let found = all.too_many(template.catalog, &types, asked.counts).or(found);
        found.map_or(PoolRefusal::NothingOffered, |(driver, wanted, limit)| {
            let driver = driver.to_owned();
            PoolRefusal::Volumes(Box::new(VolumeRefusal::Limit { driver, wanted, limit }))
        })
    }
}
