"""Every check of one client release against one platform: `NODUS_CLIENTS_WORLD={…} python checks.py`."""

import aio
import command_line
import data
import unserved
import webhooks
import workloads
from world import World

MODULES = (workloads, data, webhooks, aio, command_line, unserved)

if __name__ == "__main__":
    world = World()
    for module in MODULES:
        module.checks.run(world)
