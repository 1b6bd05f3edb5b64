//! The testbed's certificate authority: serving certificates, client certificates, the service-account key.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use crate::error::{Error, Result, file};

/// Issues every certificate of one testbed. Its key lives as long as the testbed's folder.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    dir: PathBuf,
}

/// A certificate and its key, as files.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    /// Makes a new authority and writes `ca.crt`, `ca.key`, `sa.pub` and `sa.key` into `dir`.
    pub(crate) fn create(dir: &Path) -> Result<Authority> {
        let subject = "testbed-ca";
        let fail = |source| Error::Certificate { subject: subject.to_owned(), source };
        let mut params = CertificateParams::default();
        params.distinguished_name = name(subject, None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().map_err(fail)?;
        write_private(&dir.join("ca.key"), &key.serialize_pem())?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(fail)?;
        write_private(&dir.join("ca.crt"), &issuer.pem())?;

        let service_accounts = KeyPair::generate().map_err(fail)?;
        write_private(&dir.join("sa.key"), &service_accounts.serialize_pem())?;
        write_private(&dir.join("sa.pub"), &service_accounts.public_key_pem())?;
        Ok(Authority { issuer, dir: dir.to_owned() })
    }

    /// The authority's certificate, in PEM.
    pub(crate) fn certificate_pem(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for a server on loopback, also under the name and address pods know the API server by.
    pub(crate) fn server(&self, file_name: &str) -> Result<Identity> {
        let names =
            ["localhost", "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.0.0.1"];
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names)
            .map_err(|source| Error::Certificate { subject: file_name.to_owned(), source })?;
        params.distinguished_name = name(file_name, None);
        // etcd is a client of itself, with its serving certificate.
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(file_name, params)
    }

    /// A certificate that makes its bearer this user, in this group if one is given.
    pub(crate) fn client(&self, file_name: &str, user: &str, group: Option<&str>) -> Result<Identity> {
        let mut params = CertificateParams::default();
        params.distinguished_name = name(user, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(file_name, params)
    }

    fn issue(&self, file_name: &str, mut params: CertificateParams) -> Result<Identity> {
        let fail = |source| Error::Certificate { subject: file_name.to_owned(), source };
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        let key = KeyPair::generate().map_err(fail)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(fail)?;
        let identity = Identity {
            certificate: self.dir.join(format!("{file_name}.crt")),
            key: self.dir.join(format!("{file_name}.key")),
        };
        write_private(&identity.certificate, &certificate.pem())?;
        write_private(&identity.key, &key.serialize_pem())?;
        Ok(identity)
    }
}

/// Kubernetes reads the user from the common name and the group from the organization. The library keeps one value of
/// each kind, hence one group.
fn name(user: &str, group: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, user);
    if let Some(group) = group {
        name.push(DnType::OrganizationName, group);
    }
    name
}

/// Writes a file only its owner may read.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut handle =
        options.write(true).create(true).truncate(true).mode(0o600).open(path).map_err(file("create", path))?;
    handle.write_all(text.as_bytes()).map_err(file("write", path))
}
