//! Is a seed what cloud-init, systemd and the kubelet in the guest need it to be?

#[cfg(test)]
mod examples;
#[cfg(test)]
mod full_example;
#[cfg(test)]
mod go;
#[cfg(test)]
mod image;
#[cfg(test)]
mod join;
#[cfg(test)]
mod networking;
#[cfg(test)]
mod read_back;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod sample;
