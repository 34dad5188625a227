"""Two nodes in miniature: network namespaces of one machine, joined by a pair of virtual Ethernet devices.

    python native/two_nodes.py -- shardplan-validate job.json --record record.json

Starts the command once per GPU with torchrun's variables, half of the GPUs a node. NCCL takes ranks of other nodes for
other machines (NCCL_HOSTID), so that they talk through sockets. Needs root and pyroute2. Exits with the first
status that is not zero; the others are then ended.
"""
import argparse
import os
import signal
import subprocess
import sys
import time

from pyroute2 import IPRoute, NetNS, netns

NAMES = ("shardplan-node-0", "shardplan-node-1")
ADDRESSES = ("10.77.0.1", "10.77.0.2")
DEVICE = "node"
PORT = "29517"


def join():
    """Makes both namespaces, each with its address on one end of the pair."""
    part()
    spaces = [NetNS(name) for name in NAMES]
    with IPRoute() as route:
        route.link("add", ifname="node-a", kind="veth", peer="node-b")
        for end, space, name, address in zip(("node-a", "node-b"), spaces, NAMES, ADDRESSES):
            route.link("set", index=route.link_lookup(ifname=end)[0], net_ns_fd=name)
            index = space.link_lookup(ifname=end)[0]
            space.link("set", index=index, ifname=DEVICE)
            space.addr("add", index=index, address=address, prefixlen=24)
            space.link("set", index=index, state="up", mtu=9000)
            space.link("set", index=space.link_lookup(ifname="lo")[0], state="up")
    for space in spaces:
        space.close()


def part():
    for name in NAMES:
        if name in netns.listnetns():
            netns.remove(name)


def start(command, rank, world):
    node, local = divmod(rank, world // 2)
    about = {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": local, "LOCAL_WORLD_SIZE": world // 2,
             "MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": PORT, "NCCL_HOSTID": NAMES[node], "NCCL_SOCKET_IFNAME": DEVICE,
             "NCCL_IB_DISABLE": 1,
             "CUDA_VISIBLE_DEVICES": ",".join(str(node * (world // 2) + i) for i in range(world // 2))}
    variables = {**os.environ, **{key: str(value) for key, value in about.items()}}
    return subprocess.Popen(command, env=variables, preexec_fn=lambda: (os.setsid(), netns.setns(NAMES[node])))


def wait_for(processes):
    while True:
        ended = [process.poll() for process in processes]
        wrong = [status for status in ended if status]
        if wrong or None not in ended:
            break
        time.sleep(0.1)
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return wrong[0] if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", type=int, default=2, help="an even number: half of them per node")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.gpus % 2:
        parser.error("--gpus: expected an even number")
    join()
    try:
        status = wait_for([start(options.command[1:], rank, options.gpus) for rank in range(options.gpus)])
    finally:
        part()
    sys.exit(status)
