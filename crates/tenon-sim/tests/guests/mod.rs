//! Guests follow the power of their VMs, on a clock that can be stopped. No cluster is needed for that.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenon_sim::{
    ApiAccess, Connect, ConnectError, Estate, EstateConfig, GuestConfig, Guests, ImageJoin, TemplateSpec, VmSpec,
};
use tokio::time::Instant;

const VMID: u32 = 20_001;
const BOOT: Duration = Duration::from_secs(5);

/// Notes when guests try to connect, and where to, and lets none.
#[derive(Debug, Default)]
struct Recorder {
    tries: Mutex<Vec<(Instant, String)>>,
}

impl Recorder {
    fn times(&self, since: Instant) -> Vec<u128> {
        self.tries.lock().unwrap().iter().map(|(at, _)| (*at - since).as_millis()).collect()
    }
}

impl Connect for Recorder {
    fn connect(&self, access: &ApiAccess) -> Result<kube::Client, ConnectError> {
        self.tries.lock().unwrap().push((Instant::now(), access.server.clone()));
        Err(ConnectError::Other("nobody is there".into()))
    }
}

fn bench() -> (Estate, Guests, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let join = ImageJoin {
        server: "https://10.0.0.1:6443".into(),
        ca_pem: "CA".into(),
        bootstrap_token: "abc123.0123456789abcdef".into(),
        node_labels: String::new(),
        kubelet_config: serde_json::Value::Null,
    };
    let config = GuestConfig {
        boot_delay: BOOT,
        retry_first: Duration::from_secs(1),
        retry_most: Duration::from_secs(4),
        image_join: Some(join),
        connect: recorder.clone(),
        ..GuestConfig::default()
    };
    let estate = Estate::new(EstateConfig::default());
    let guests = Guests::start(&estate, config);
    (estate, guests, recorder)
}

fn add_vm(estate: &Estate) {
    let base = TemplateSpec { vmid: VMID, name: "vm".into(), ..TemplateSpec::default() };
    estate.add_vm(&VmSpec { base, running: true }).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_guest_boots_after_its_delay_and_tries_with_growing_pauses() {
    let (estate, guests, recorder) = bench();
    let start = Instant::now();
    add_vm(&estate);
    tokio::time::sleep(Duration::from_secs(21)).await;
    assert_eq!(recorder.times(start), [5_000, 6_000, 8_000, 12_000, 16_000, 20_000]);
    assert_eq!(recorder.tries.lock().unwrap()[0].1, "https://10.0.0.1:6443");
    let log = guests.guest_log(VMID);
    let told = "cannot create a client for https://10.0.0.1:6443: nobody is there";
    assert_eq!(log, ["power on", told], "{log:?}");
    guests.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_guest_ends_with_its_power_and_boots_with_it_again() {
    let (estate, guests, recorder) = bench();
    let start = Instant::now();
    add_vm(&estate);
    tokio::time::sleep(Duration::from_millis(5_500)).await;
    assert_eq!(guests.running(), [VMID]);
    estate.remove_vm(VMID).unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((recorder.times(start), guests.running()), (vec![5_000], vec![]));
    add_vm(&estate);
    tokio::time::sleep(Duration::from_millis(5_500)).await;
    assert_eq!(recorder.times(start), [5_000, 65_500 + BOOT.as_millis()]);
    assert_eq!(guests.guest_log(VMID).iter().filter(|line| *line == "power on").count(), 2);
    guests.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_tried_after_the_guests_are_shut_down_or_dropped() {
    for drop_them in [false, true] {
        let (estate, guests, recorder) = bench();
        add_vm(&estate);
        tokio::time::sleep(Duration::from_millis(5_500)).await;
        if drop_them {
            drop(guests);
        } else {
            guests.shutdown().await;
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(recorder.tries.lock().unwrap().len(), 1);
    }
}
