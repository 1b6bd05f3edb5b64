//! The last look before a VM is cloned: whatever would keep its node from joining is found while there is no VM yet.

use tenon_model::LaunchRecord;

use super::ClaimError;
use crate::context::Context;
use crate::first_boot::{self, Inspection, NoFirstBoot, Subject};
use crate::join::JoinUse;

/// Why the VM of a launch could not be given first-boot data that lets its node join; nothing if it could. A class is judged
/// now and then, and a Secret or a binding may have been broken since.
pub(super) async fn no_first_boot(
    context: &Context,
    subject: &Subject<'_>,
    record: &LaunchRecord,
) -> Result<Option<NoFirstBoot>, ClaimError> {
    let options = &subject.class.spec.metadata_options;
    let is_own = options.templates_ref.is_some() || options.values_ref.is_some();
    let used = if is_own {
        let LaunchRecord { place, template, .. } = record;
        let zone = format!("{}/{}/{template}", place.region, place.host);
        let found = first_boot::inspect(&context.secrets, &context.regions, subject, &[zone]).await;
        match found.map_err(|source| ClaimError::kube("read the Secrets of the ProxmoxNodeClass", source))? {
            Inspection::Faulty(why) => return Ok(Some(why)),
            Inspection::Fine(used) => {
                context.board.uses.note(subject.class, used);
                used
            }
            // What it uses will be known when the VM is there.
            Inspection::Unknown => JoinUse::LEAST,
        }
    } else {
        JoinUse::ALL
    };
    Ok(context.join_checks().look(context.clock.now()).await?.judge(used).err())
}
