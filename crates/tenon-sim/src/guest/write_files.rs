//! How does cloud-init write the files that a cloud-config names?

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::disk::{Disk, File};

/// What cloud-init gives a file that names no mode.
const USUAL_MODE: u32 = 0o644;

/// One entry of `write_files`.
#[derive(Debug, Deserialize)]
pub(crate) struct WriteFile {
    path: String,
    #[serde(default)]
    content: String,
    #[serde(default)]
    encoding: Option<String>,
    #[serde(default)]
    owner: Option<String>,
    #[serde(default)]
    permissions: Option<String>,
    #[serde(default)]
    append: bool,
}

impl WriteFile {
    /// Writes it, or says why cloud-init would not.
    pub(crate) fn write_to(&self, disk: &mut Disk) -> Result<(), String> {
        let path = &self.path;
        if !path.starts_with('/') {
            return Err(format!("cannot write {path}: the path is not absolute"));
        }
        let content = self.decoded()?;
        let given = self.permissions.as_deref();
        let mode = given.map_or(Ok(USUAL_MODE), |text| u32::from_str_radix(text.trim_start_matches("0o"), 8));
        let mode = mode.map_err(|_| format!("cannot write {path}: its permissions are not octal"))?;
        let owner = self.owner.clone().unwrap_or_else(|| "root:root".into());
        let file = File { mode, owner, content };
        if self.append {
            disk.append(path, file);
        } else {
            disk.write(path, file);
        }
        Ok(())
    }

    fn decoded(&self) -> Result<Vec<u8>, String> {
        let path = &self.path;
        match self.encoding.as_deref().unwrap_or("text/plain") {
            "" | "text/plain" => Ok(self.content.clone().into_bytes()),
            "b64" | "base64" => {
                let joined: String = self.content.split_whitespace().collect();
                STANDARD.decode(joined).map_err(|error| format!("cannot decode {path}: {error}"))
            }
            other => Err(format!("cannot write {path}: the simulator does not know encoding {other}")),
        }
    }
}
