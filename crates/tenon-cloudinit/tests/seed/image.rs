//! Do the readers of a CD-ROM find the files, each in the folder that they look at?

use tenon_cloudinit::Seed;

use crate::read_back::{seed, text};
use crate::sample::{bare, full};

const SECTOR: usize = 2048;
/// Volume descriptors start here, whatever the image.
const DESCRIPTORS: usize = 16;

/// One file of a folder: the name as stored, the Rock Ridge name if any, and the content.
struct Entry {
    stored: Vec<u8>,
    rock_ridge: Option<String>,
    content: String,
}

fn number(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize
}

/// The volume descriptor of a kind: 1 is the primary one, 2 the Joliet one.
fn descriptor(image: &[u8], kind: u8) -> &[u8] {
    let mut sectors = image.chunks(SECTOR).skip(DESCRIPTORS).take_while(|sector| &sector[1..6] == b"CD001");
    sectors.find(|sector| sector[0] == kind).unwrap()
}

fn content<'a>(image: &'a [u8], record: &[u8]) -> &'a [u8] {
    let start = number(&record[2..]) * SECTOR;
    &image[start..start + number(&record[10..])]
}

/// The files of the root folder, without the entries for itself and its parent.
fn files(image: &[u8], descriptor: &[u8]) -> Vec<Entry> {
    let folder = content(image, &descriptor[156..190]);
    let mut rest = folder;
    let mut entries = Vec::new();
    while rest.first().is_some_and(|length| *length != 0) {
        let (record, after) = rest.split_at(usize::from(rest[0]));
        rest = after;
        let (stored, system_use) = record[33..].split_at(usize::from(record[32]));
        if stored.len() > 1 {
            let content = String::from_utf8(content(image, record).to_vec()).unwrap();
            entries.push(Entry { stored: stored.to_vec(), rock_ridge: rock_ridge_name(system_use), content });
        }
    }
    entries
}

/// The alternate name: signature `NM`, length, version, flags, text.
fn rock_ridge_name(system_use: &[u8]) -> Option<String> {
    let at = system_use.windows(2).position(|pair| pair == b"NM")?;
    let length = usize::from(system_use[at + 2]);
    Some(String::from_utf8(system_use[at + 5..at + length].to_vec()).unwrap())
}

fn utf16(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    String::from_utf16(&units).unwrap().split(';').next().unwrap().to_owned()
}

fn sorted(mut pairs: Vec<(String, String)>) -> Vec<(String, String)> {
    pairs.sort();
    pairs
}

#[test]
fn the_volume_is_called_cidata_in_both_descriptors() {
    let image = seed(&full()).iso().unwrap();
    assert_eq!(descriptor(&image, 1)[40..72].trim_ascii_end(), b"cidata");
    assert_eq!(utf16(&descriptor(&image, 2)[40..72]).trim_end(), "cidata");
    // The escape sequence of the third level of Joliet.
    assert_eq!(descriptor(&image, 2)[88..91], *b"%/E");
}

#[test]
fn rock_ridge_and_joliet_readers_find_the_same_files() {
    let seed = seed(&full());
    let image = seed.iso().unwrap();
    let expected = sorted(vec![
        ("meta-data".to_owned(), text(&seed.meta_data)),
        ("network-config".to_owned(), text(seed.network_config.as_ref().unwrap())),
        ("user-data".to_owned(), text(&seed.user_data)),
    ]);
    let primary = files(&image, descriptor(&image, 1));
    let rock_ridge = primary.into_iter().map(|entry| (entry.rock_ridge.unwrap(), entry.content)).collect();
    assert_eq!(sorted(rock_ridge), expected);
    let joliet = files(&image, descriptor(&image, 2));
    let joliet = joliet.into_iter().map(|entry| (utf16(&entry.stored), entry.content)).collect();
    assert_eq!(sorted(joliet), expected);
}

#[test]
fn an_image_without_network_has_two_files() {
    let image = seed(&bare()).iso().unwrap();
    assert_eq!(files(&image, descriptor(&image, 1)).len(), 2);
}

#[test]
fn an_empty_network_config_is_no_file() {
    let mut seed = seed(&full());
    seed.network_config = Some(Vec::new());
    let image = seed.iso().unwrap();
    assert_eq!(files(&image, descriptor(&image, 1)).len(), 2);
}

#[test]
fn an_image_of_a_usual_seed_is_small_and_whole() {
    let image = seed(&full()).iso().unwrap();
    assert_eq!(image.len() % SECTOR, 0);
    assert_eq!(number(&descriptor(&image, 1)[80..]) * SECTOR, image.len());
    assert!(image.len() < 512 * 1024, "{}", image.len());
}

/// FNV-1a, which is enough to notice that a byte differs.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A launch that is repeated by another process on another machine uploads the same image: nothing of the clock, the
/// place or the process is in it. A new release of the writer may change the number; no run may.
#[test]
fn the_same_texts_give_the_same_image_in_every_run() {
    let seed = Seed {
        user_data: "#cloud-config\n{}\n".into(),
        meta_data: "instance-id: '20001'\n".into(),
        vendor_data: None,
        network_config: Some("network: {version: 2}\n".into()),
        labels_left_out: Vec::new(),
    };
    assert_eq!(format!("{:016x}", digest(&seed.iso().unwrap())), "b70cec68fc733508");
}
