//! The fields of a message, one after the other.

use super::ProtobufFault;

/// What is left of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A number or a flag.
    Number(u64),
    /// A text or a message.
    Bytes(&'a [u8]),
    /// Something of a fixed width, which no field has that is read.
    Fixed,
}

impl<'a> Value<'a> {
    pub(super) fn bytes(self) -> &'a [u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            Value::Number(_) | Value::Fixed => &[],
        }
    }

    pub(super) fn number(self) -> i64 {
        match self {
            // Negative numbers are sent as they are in memory.
            Value::Number(number) => number.cast_signed(),
            Value::Bytes(_) | Value::Fixed => 0,
        }
    }
}

impl<'a> Fields<'a> {
    /// The next field and its number; nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, ProtobufFault> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).map_err(|_| ProtobufFault::TooShort)?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| ProtobufFault::TooShort)?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return Err(ProtobufFault::UnknownType(number)),
        };
        Ok(Some((number, value)))
    }

    /// The value of a field that is there at most once. If it is there more often, the last one counts.
    pub(super) fn one(self, wanted: u32) -> Result<Option<Value<'a>>, ProtobufFault> {
        Ok(self.pick([wanted])?[0])
    }

    /// The values of several such fields.
    pub(super) fn pick<const N: usize>(mut self, wanted: [u32; N]) -> Result<[Option<Value<'a>>; N], ProtobufFault> {
        let mut found = [None; N];
        while let Some((number, value)) = self.next()? {
            if let Some(index) = wanted.iter().position(|wanted| *wanted == number) {
                found[index] = Some(value);
            }
        }
        Ok(found)
    }

    fn varint(&mut self) -> Result<u64, ProtobufFault> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.0.split_first().ok_or(ProtobufFault::TooShort)?;
            self.0 = rest;
            number |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(ProtobufFault::TooShort)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufFault> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(ProtobufFault::TooShort)?;
        self.0 = rest;
        Ok(taken)
    }
}
