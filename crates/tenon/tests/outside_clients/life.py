"""A whole life of a VM with proxmoxer: login, template, clone, config, ISO, start, agent, pool, firewall, stop, destroy."""

import io
import sys
import time

from proxmoxer import ProxmoxAPI
from proxmoxer.core import ResourceException

host, port, ca, password = sys.argv[1:]
pve = ProxmoxAPI(host, port=int(port), user="root@pam", password=password, verify_ssl=ca)
node = pve.nodes("pve1")


def finish(upid):
    """Follows a task to its end, with a bound."""
    for _ in range(600):
        status = node.tasks(upid).status.get()
        if status["status"] == "stopped":
            assert status["exitstatus"] == "OK", (status, node.tasks(upid).log.get())
            return
        time.sleep(0.05)
    raise AssertionError(f"{upid} does not end")


def refused(text, call):
    """The call must be refused with this text."""
    try:
        call()
    except ResourceException as error:
        assert text in str(error), error
        return
    raise AssertionError(f"not refused: {text}")


assert pve.version.get()["release"] == "9.2"
assert {row["node"] for row in pve.nodes.get()} == {"pve1", "pve2"}
assert any(row["type"] == "storage" for row in pve.cluster.resources.get())
template = int(pve.cluster.nextid.get())
print("login and listings")

finish(
    node.qemu.post(
        vmid=template, name="golden", memory=1024, cores=1, agent="enabled=1", scsihw="virtio-scsi-single",
        scsi0="local:0,import-from=local:import/debian-13.qcow2", ide2="local:cloudinit", net0="virtio,bridge=vmbr0",
        serial0="socket", vga="serial0",
    )
)
finish(node.qemu(template).template.post())
assert node.qemu(template).config.get()["template"] == 1
assert node.qemu(template).feature.get(feature="clone")["hasFeature"] == 1
refused("you can't convert a template", lambda: node.qemu(template).template.post())
print("template")

pve.pools.post(poolid="life", comment="of proxmoxer")
vmid = template + 1
finish(node.qemu(template).clone.post(newid=vmid, name="clone-a", description="made by proxmoxer", pool="life"))
vm = node.qemu(vmid)
config = vm.config.get()
assert config["description"] == "made by proxmoxer" and "lock" not in config, config
vm.config.put(cores=2, memory=2048, tags="b;a", digest=config["digest"])
refused("checksum mismatch", lambda: vm.config.put(cores=3, digest=config["digest"]))
refused("property is not defined", lambda: vm.config.put(colour="blue"))
config = vm.config.get()
assert (config["cores"], config["memory"], config["tags"]) == (2, "2048", "a;b"), config
finish(vm.resize.put(disk="scsi0", size="+1G"))
finish(vm.config.post(onboot=1))
print("clone and config")

seed = io.BytesIO(b"seed" * 1000)
seed.name = "seed.iso"
finish(node.storage("local").upload.post(content="iso", filename=seed))
volumes = [row["volid"] for row in node.storage("local").content.get(content="iso")]
assert "local:iso/seed.iso" in volumes, volumes
vm.config.put(ide2="local:iso/seed.iso,media=cdrom")
print("ISO")

vm.firewall.options.put(enable=1, policy_in="DROP")
vm.firewall.rules.post(type="in", action="ACCEPT", proto="tcp", dport="22", enable=1)
assert vm.firewall.rules.get()[0]["dport"] == "22"
print("firewall")

finish(vm.status.start.post())
for _ in range(60):
    try:
        assert vm.agent.ping.post() == {"result": {}}
        break
    except ResourceException:
        time.sleep(0.2)
else:
    raise AssertionError("the agent does not answer")
assert vm.agent("get-host-name").get()["result"]["host-name"] == "clone-a"
assert vm.status.current.get()["status"] == "running"
refused("is running - destroy failed", lambda: vm.delete())
print("start and agent")

pool = pve.pools.get(poolid="life")[0]
assert [member["vmid"] for member in pool["members"]] == [vmid], pool
pve.pools.put(poolid="life", vms=str(vmid), delete=1)
pve.pools.delete(poolid="life")
print("pool")

finish(vm.status.stop.post())
vm.config.put(ide2="none,media=cdrom")
finish(node.storage("local").content("local:iso/seed.iso").delete())
finish(vm.delete(purge=1))
refused("does not exist", lambda: vm.config.get())
finish(node.qemu(template).delete())
assert not [row for row in pve.cluster.resources.get(type="vm") if row["vmid"] in (vmid, template)]
print("a whole life")
