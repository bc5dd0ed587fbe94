"""The asynchronous client: the same calls, awaited."""

import asyncio

from harness import Checks, holds, same
from world import status_of

checks = Checks()
check = checks.check


def awaited(name):
    """Declares a coroutine function of the world and a client as a check."""

    def declare(body):
        @check(name)
        def run(world):
            async def with_client():
                async with world.nodus.AsyncClient() as client:
                    await asyncio.wait_for(body(world, client), timeout=180)

            asyncio.run(with_client())

        return body

    return declare


@awaited("async: run, wait, read back")
async def run_and_read(world, client):
    run = await client.run(command=["sh", "-c", "echo one; mkdir outputs; echo kept > outputs/kept.txt"])
    await run.wait(poll_seconds=0.2, timeout_seconds=120)
    same((status_of(run), await run.logs()), ("completed", "one\n"))
    same([output.name for output in await run.outputs()], ["outputs.tar"])
    path = await client.download_output(run.id, "outputs.tar", world.folder / "async.tar")
    holds(path.stat().st_size > 0, "the output came")
    types = [event.type async for event in run.iter_events()]
    holds(types[0] == "workload.accepted" and "workload.completed" in types, "all is told")
    same(len(await run.routing()), 1)
    holds(await run.artifacts(), "there are artifacts")
    same((await run.ledger()).raw["workload_id"], run.id)
    holds((await client.live_logs(run.id))["chunks"], "the live log is still there")


@awaited("async: many runs at once")
async def many(world, client):
    runs = await asyncio.gather(*(client.run(command=["echo", str(n)]) for n in range(5)))
    await asyncio.gather(*(run.wait(poll_seconds=0.3, timeout_seconds=150) for run in runs))
    same([await run.logs() for run in runs], [f"{n}\n" for n in range(5)])


@awaited("async: list and cancel")
async def list_and_cancel(world, client):
    run = await client.run(command=["sleep", "300"])
    holds(any(row.id == run.id for row in await client.list(status="active")), "it is among the active ones")
    await run.cancel()
    await run.wait(poll_seconds=0.2, timeout_seconds=60)
    same(status_of(run), "cancelled")


@awaited("async: assets")
async def assets(world, client):
    asset = await client.assets.upload(world.file("async.csv", "a\n1\n"))
    holds(any(row.id == asset.id for row in await client.assets.list()), "the list has it")
    await client.assets.delete(asset.id)
