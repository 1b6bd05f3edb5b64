//! Which CSI driver attaches a volume. A volume without one (NFS, a folder of the node) takes no place of any driver.

use super::Source;

/// The driver of AWS disks that were created before CSI.
const AWS_EBS: &str = "ebs.csi.aws.com";

/// Drivers that took over from a provisioner of before CSI.
const IN_TREE: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", AWS_EBS),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
];

/// The driver that attaches a volume, if one does.
pub(super) fn of(source: Source<'_>) -> Option<String> {
    match source {
        Source::Volume(volume) => match &volume.spec.csi {
            Some(csi) => Some(csi.driver.clone()).filter(|driver| !driver.is_empty()),
            None => volume.spec.aws_elastic_block_store.map(|_| AWS_EBS.to_owned()),
        },
        Source::Class(class) => {
            let migrated = IN_TREE.iter().find(|(in_tree, _)| *in_tree == class.provisioner);
            let driver = migrated.map_or(class.provisioner.as_str(), |(_, driver)| driver);
            Some(driver.to_owned()).filter(|driver| !driver.is_empty())
        }
    }
}
