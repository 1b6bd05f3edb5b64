"""Reads a seed with cloud-init's own modules, and prints what they found as JSON.

Arguments: a folder with the files of the seed, and an empty folder to work in.
"""

import json
import os
import shutil
import sys

from cloudinit import helpers, util
from cloudinit.sources import DataSourceNoCloud


def nocloud(seed, work):
    """The data source for drives labelled cidata, given the files in the folder it looks at first."""
    folder = os.path.join(work, "cloud", "seed", "nocloud")
    shutil.copytree(seed, folder)
    paths = helpers.Paths({"cloud_dir": os.path.join(work, "cloud"), "run_dir": os.path.join(work, "run")})
    # Drives of this machine are no part of the test.
    settings = {"datasource": {"NoCloud": {"fs_label": None}}}
    source = DataSourceNoCloud.DataSourceNoCloud(settings, None, paths)
    if not source.get_data():
        sys.exit("NoCloud does not accept the seed")
    return source


def parts(message):
    """Each part of user-data that cloud-init hands to a handler: its kind, and what its YAML reader makes of it."""
    for part in message.walk():
        if part.is_multipart():
            continue
        text = part.get_payload(decode=True).decode()
        yield {"kind": part.get_content_type(), "read": util.load_yaml(text), "text": text}


def text(raw):
    return raw.decode() if isinstance(raw, bytes) else raw


def main():
    source = nocloud(*sys.argv[1:3])
    hostname = source.get_hostname()
    found = {
        "instance_id": source.get_instance_id(),
        # A text before release 23, a pair since.
        "hostname": getattr(hostname, "hostname", hostname),
        "meta_data": source.metadata,
        "user_data": text(source.get_userdata_raw()),
        "vendor_data": text(source.get_vendordata_raw()),
        "network_config": source.network_config,
        "parts": list(parts(source.get_userdata())),
    }
    json.dump(found, sys.stdout, default=str)


main()
