"""Runs: submitted, followed, read back, cancelled, refused."""

import hashlib
import uuid

from harness import Checks, holds, raised, same, until
from world import status_of

checks = Checks()
check = checks.check


@check("run, wait")
def run_and_wait(world):
    run = world.finished
    same(status_of(run), "completed")
    holds(run.succeeded and run.is_terminal, "a completed run has succeeded and is over")
    same([stage.id for stage in run.stages], ["main"])
    until("a run that ran has cost something", lambda: world.client.get(run.id).spend_usd > 0)


@check("run a command line as text")
def run_text(world):
    run = world.client.run(command="echo 'two words'").wait(poll_seconds=0.2, timeout_seconds=120)
    same(run.logs(), "two words\n")


@check("run that fails")
def failing_run(world):
    run = world.finish("echo before; exit 3")
    same((status_of(run), run.succeeded), ("failed", False))
    same(run.logs(), "before\n")


@check("run with requirements, policy and a limit of money")
def demanding_run(world):
    requirements = {"compute_class": "vm", "peak_memory_gb": 0.25, "vcpus": 0.1}
    run = world.finish("true", requirements=requirements, policy={"data_regions": ["local"]}, budget=1)
    same(status_of(run), "completed")


@check("replay by key")
def replay(world):
    key = f"clients-{uuid.uuid4()}"
    first = world.run("true", idempotency_key=key)
    again = world.run("true", idempotency_key=key)
    same((again.id, first.replayed, again.replayed), (first.id, False, True))
    error = raised(world.nodus.IdempotencyConflictError, lambda: world.run("false", idempotency_key=key))
    same(error.status_code, 409)


@check("validate")
def validate(world):
    body = {"source": {"command": ["true"]}, "requirements": {}, "outcome": {"max_cost_usd": 1}}
    answer = world.client._request("POST", "/v1/workloads/validate", json=body)
    same((answer["valid"], answer["submitted"]), (True, False))


@check("get")
def get(world):
    run = world.client.get(world.finished.id)
    same((run.id, status_of(run)), (world.finished.id, "completed"))
    same(run.refresh().id, run.id)
    holds(run.route is not None and run.route.sku == "local-cpu", "the route names what it ran on")
    holds(run.meter is not None and run.cost_now_usd == run.spend_usd, "nothing accrues after the end")


@check("list, pages and filters")
def listing(world):
    world.finished
    rows = world.client.list(limit=5)
    holds(0 < len(rows) <= 5, "a page has at most what was asked for")
    page, following = world.client.list_page(limit=1)
    same((len(page), following), (1, 1))
    everything = [run.id for run in world.client.iter_workloads(page_size=2)]
    same(len(everything), len(set(everything)))
    holds(world.finished.id in everything, "the run is found by turning pages")
    for wanted in ("terminal", "completed", ["completed", "failed"]):
        holds(any(run.id == world.finished.id for run in world.client.list(status=wanted)), f"{wanted} has the run")
    for scope in ("mine", "team"):
        holds(world.client.list(scope=scope), f"the scope {scope} has runs")


@check("events")
def events(world):
    told = list(world.finished.iter_events())
    types = [event.type for event in told]
    same((types[0], told[0].seq), ("workload.accepted", 1))
    holds("workload.completed" in types, "the end is told")
    same([event.seq for event in told], sorted({event.seq for event in told}))
    holds(all(event.id and event.created_at for event in told), "every event has an id and a time")
    same([event.seq for event in world.finished.events(after=2)], [event.seq for event in told][2:])


@check("events as they happen")
def streamed_events(world):
    run = world.run("sleep 1")
    told = list(run.stream_events(poll_seconds=0.2))
    # The client asks for events, then whether the run is over: what comes in between it does not read any more.
    same([event.seq for event in told], list(range(1, len(told) + 1)))
    holds("workload.running" in [event.type for event in told], "it is told while it runs")
    holds(run.refresh().is_terminal, "the stream ends with the run")


@check("logs")
def logs(world):
    same(world.finished.logs(), "first\nsecond\n")
    same(world.client.logs(world.finished.id, stage="main", generation=1), "first\nsecond\n")
    raised(world.nodus.NodusError, lambda: world.client.logs(world.finished.id, stage="nowhere"))


@check("live logs")
def live_logs(world):
    run = world.run("for i in 1 2 3 4 5; do echo line $i; sleep 0.4; done")
    text, cursor, pages = "", "", 0

    def read():
        nonlocal text, cursor, pages
        page = world.client.live_logs(run.id, after=cursor)
        fresh = "".join(chunk["text"] for chunk in page["chunks"])
        text, cursor, pages = text + fresh, page["next_cursor"], pages + bool(fresh)
        return text.count("\n") == 5

    until("all five lines", read)
    same(text, "".join(f"line {i}\n" for i in range(1, 6)))
    holds(pages > 1, "lines come while the run goes on")
    run.wait(poll_seconds=0.2, timeout_seconds=60)


@check("wait with live output")
def wait_with_progress(world):
    run = world.run("echo shown; sleep 0.5")
    same(status_of(run.wait(poll_seconds=0.2, timeout_seconds=120, progress=True)), "completed")


@check("outputs and downloads")
def outputs(world):
    (output,) = world.finished.outputs()
    same((output.name, output.stage_id, output.bytes), ("kept.txt", "main", 5))
    path = world.client.download_output(world.finished.id, output.name, world.folder / "one.txt", stage="main")
    same(path.read_text(), "kept\n")
    same(hashlib.sha256(path.read_bytes()).hexdigest(), output.sha256)
    paths = world.finished.download(world.folder / "all")
    same([path.read_text() for path in paths], ["kept\n"])
    missing = lambda: world.client.download_output(world.finished.id, "other.txt", world.folder / "no.txt")
    raised(world.nodus.NotFoundError, missing)


@check("artifacts")
def artifacts(world):
    final = [artifact for artifact in world.finished.artifacts() if artifact.final]
    same([list(artifact.outputs) for artifact in final], [["kept.txt"]])
    holds(final[0].outputs["kept.txt"].sha256, "a file of a manifest has its checksum")


@check("ledger")
def ledger(world):
    settled = lambda: world.client.get(world.finished.id).ledger().settlement.status == "settled"
    until("the books are closed", settled)
    book = world.finished.ledger()
    same(book.settlement.balance_usd, 0)
    same(round(book.charged_usd, 6), round(world.client.get(world.finished.id).spend_usd, 6))


@check("routing")
def routing(world):
    (placement,) = world.finished.routing()
    same((placement["stage_id"], placement["generation"], placement["outcome"]), ("main", 1, "completed"))


@check("cancel")
def cancel(world):
    run = world.run("sleep 300")
    until("it runs", lambda: status_of(run.refresh()) == "running")
    run.cancel()
    world.client.cancel(run.id)
    same(status_of(run.wait(poll_seconds=0.2, timeout_seconds=60)), "cancelled")


@check("a workload file")
def workload_file(world):
    path = world.file("nodus.toml", 'command = ["sh", "-c", "echo from a file"]\n')
    run = world.client.run_file(path).wait(poll_seconds=0.2, timeout_seconds=120)
    same(run.logs(), "from a file\n")


@check("errors are told as the client knows them")
def errors(world):
    missing = raised(world.nodus.NotFoundError, lambda: world.client.get("wl_01a22a36f4f370008000003abe502137"))
    holds(missing.request_id, "an error names its request")
    wrong = world.nodus.Client("nk_nobody-has-this-key")
    same(raised(world.nodus.AuthenticationError, wrong.list).status_code, 401)
    unknown = {"requirements": {"gpu": "abacus"}}
    bad = lambda: world.client._request("POST", "/v1/workloads", json={"source": {"command": ["true"]}, **unknown},
                                        idempotency_key="clients-bad")
    same(raised(world.nodus.ValidationError, bad).status_code, 400)


@check("who am I, and is it well")
def identity(world):
    me = world.client._request("GET", "/v1/me")
    holds(me["email"] and me["tenant"].startswith("team_"), "the key has a holder and a team")
    holds(world.client.healthz(), "it lives")
    holds(world.client.readyz()["checks"]["database"], "it is ready")
