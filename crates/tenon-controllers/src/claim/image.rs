//! What a template says of the image and the processor of its copies, in the reference's words.

use tenon_api::template_image::fnv1;
use tenon_model::VmId;
use tenon_pve::VmConfig;

/// How a template that is kept by a controller says which image it holds.
const HASH: &str = "Hash: ";

/// The image of a template: the hash in its description, or else one of when it was made. Reproducible, because a claim whose
/// image is another than its template's has drifted.
pub(crate) fn image_id(template: VmId, config: &VmConfig) -> String {
    image(template, config.description(), config.get("meta").unwrap_or_default())
}

fn image(template: VmId, description: &str, meta: &str) -> String {
    let told = description.split_once(HASH).map(|(_, rest)| rest);
    let hash: String = told.into_iter().flat_map(|rest| rest.chars().take_while(char::is_ascii_digit)).collect();
    if hash.is_empty() { format!("{template}-{}", fnv1(meta)) } else { hash }
}

/// The processor its copies show to their guests.
pub(crate) fn cpu_type(config: &VmConfig) -> Option<String> {
    let cpu = config.properties("cpu")?;
    let told = cpu.get("cputype").or_else(|| cpu.iter().find(|(key, _)| key.is_none()).map(|(_, value)| value));
    told.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_the_number_in_its_template_s_description_or_else_one_of_when_it_was_made() {
        let meta = "creation-qemu=9.2.0,ctime=1751875034";
        let image = |description| image("9001".parse().unwrap(), description, meta);
        assert_eq!(image("do not delete it. Hash: 15108473915739476123"), "15108473915739476123");
        assert_eq!(image("Hash: 17 and more"), "17");
        for description in ["", "a template", "Hash: none", "hash: 17"] {
            assert_eq!(image(description), format!("9001-{}", fnv1(meta)), "{description}");
        }
    }

    #[test]
    fn a_processor_is_found_with_its_name_or_without() {
        let of = |line: &str| cpu_type(&VmConfig::from_lines(line).unwrap());
        assert_eq!(of("cpu: host"), Some("host".to_owned()));
        assert_eq!(of("cpu: x86-64-v2-AES,flags=+aes;-pcid"), Some("x86-64-v2-AES".to_owned()));
        assert_eq!(of("cpu: flags=+aes,cputype=kvm64"), Some("kvm64".to_owned()));
        assert_eq!(of("cores: 2"), None);
    }
}
