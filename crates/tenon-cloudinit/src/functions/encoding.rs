//! What is a text in base64?

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use tenon_gotemplate::{Failure, Limits, Output, Value};

use super::arguments;

/// Go does not look at the bits that the last character leaves over.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&base64::alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// `b64enc`.
pub(super) fn encode_base64(limits: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let mut out = Output::new(limits.output);
    out.push(STANDARD.encode(arguments::string(arguments, 0)?))?;
    Ok(Value::string(out.into_bytes()))
}

/// `b64dec`: with padding; line ends anywhere do not count.
pub(super) fn decode_base64(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let text = arguments::string(arguments, 0)?.iter().copied();
    let text: Vec<u8> = text.filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let decoded = LENIENT.decode(text).map_err(|error| Failure::new(format!("illegal base64 data: {error}")))?;
    Ok(Value::string(decoded))
}
