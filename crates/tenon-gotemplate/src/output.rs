//! How much may a template write?

use crate::Failure;

/// Bytes with a bound. Everything that grows by what a template says is written through one of these, so that no
/// template can fill the memory.
#[derive(Debug)]
pub struct Output {
    bytes: Vec<u8>,
    limit: usize,
}

impl Output {
    /// An empty one that takes `limit` bytes.
    pub fn new(limit: usize) -> Output {
        Output { bytes: Vec::new(), limit }
    }

    /// Adds bytes, or says that they are too many.
    pub fn push(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
        self.fits(bytes.as_ref().len())?;
        self.bytes.extend_from_slice(bytes.as_ref());
        Ok(())
    }

    /// Adds a byte `count` times.
    pub fn fill(&mut self, byte: u8, count: usize) -> Result<(), Failure> {
        self.fits(count)?;
        self.bytes.resize(self.bytes.len() + count, byte);
        Ok(())
    }

    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// What was written so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many bytes it takes in all.
    pub fn limit(&self) -> usize {
        self.limit
    }

    fn fits(&self, more: usize) -> Result<(), Failure> {
        if more > self.limit - self.bytes.len() {
            return Err(Failure::new(format!("the output is larger than {} bytes", self.limit)));
        }
        Ok(())
    }
}
