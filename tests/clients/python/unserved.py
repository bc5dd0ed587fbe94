"""Calls that this release of the platform refuses by name. One that is served some day fails here until it is moved."""

import uuid

from harness import Checks, part

checks = Checks()
NOT_SERVED = (501, "not_implemented")
POOL = "pool_01a22a36f4f370008000003abe502137"
HOUR = {"from_": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z", "bucket": "hour"}
ACTION = {"kind": "idle_reclaim", "level": "recommend", "window_cron": "0 3 * * *", "parallelism_cap": 1}

refused = checks.refused


def once(client):
    """A client that does not try again what is refused with a status above 499."""
    client.max_retries = 0
    return client


def through(name, call, status_and_code=NOT_SERVED):
    """Declares a refused call of one part of the client, named as `part.method`."""

    def body(world):
        owner = once(world.nodus.Client())
        *parts, method = name.split(".")
        for attribute in parts:
            owner = part(owner, attribute)
        return call(part(owner, method), world)

    refused(name, *status_and_code)(body)


def key():
    return f"clients-{uuid.uuid4()}"


MATRIX = {"gpu_families": ["H100"], "batch_sizes": [1], "regions": ["local"], "repetitions": 1, "budget": 1}
through("benchmark", lambda call, _: call(workload={"source": {"command": ["true"]}}, **MATRIX, idempotency_key=key()))
through("get_benchmark", lambda call, _: call("bench_1"))
through("freeze", lambda call, world: call(world.finished.id))
through("freeze_status", lambda call, world: call(world.finished.id))
through("resume", lambda call, world: call(world.finished.id))
STAGES = [{"id": name, "source": {"command": ["true"]}} for name in ("first", "second")]
through("run", lambda call, _: call(stages=STAGES), (400, "stages_unsupported"))

through("rl.preview", lambda call, _: call({"recipe_id": "any"}))
through("rl.launch", lambda call, _: call(configuration={}, review_token="any", idempotency_key=key()))
through("rl.grading_results", lambda call, world: call(world.finished.id, revision=1))

through("pools.update", lambda call, _: call(POOL, name="other"))
through("pools.enrollment_token", lambda call, _: call(POOL))
through("pools.hosts", lambda call, _: call(POOL))
through("pools.drain_host", lambda call, _: call(POOL, "host_1"))
through("pools.remove_host", lambda call, _: call(POOL, "host_1"))
through("pools.utilization", lambda call, _: call(POOL, **HOUR))
through("pools.forecast", lambda call, _: call(POOL, horizon=7))
through("pools.recommendations", lambda call, _: call(POOL))
through("pools.recommendation_done", lambda call, _: call(POOL, "rec_1", "applied"))
through("pools.proposals", lambda call, _: call(POOL))
through("pools.approve_proposal", lambda call, _: call(POOL, "prop_1"))
through("pools.reject_proposal", lambda call, _: call(POOL, "prop_1"))
through("pools.action_policies", lambda call, _: call(POOL))
through("pools.set_action_policy", lambda call, _: call(POOL, **ACTION))
through("pools.set_act_kill_switch", lambda call, _: call(POOL, True))
through("pools.action_proposals", lambda call, _: call(POOL))
through("pools.approve_action_proposal", lambda call, _: call(POOL, "act_1"))
through("pools.reject_action_proposal", lambda call, _: call(POOL, "act_1"))
through("pools.shadow_runs", lambda call, _: call(POOL))
through("pools.start_shadow", lambda call, _: call(POOL, **ACTION))

through("sandboxes.create", lambda call, _: call(image="debian:12"))
through("sandboxes.list", lambda call, _: call())
through("sandboxes.from_id", lambda call, _: call("sb_1"))
through("operations.catalog", lambda call, _: call())
through("operations.list", lambda call, _: call())

through("sandboxes.capabilities", lambda call, _: call(), (501, "sandbox_capabilities_unavailable"))
through("sandboxes.templates", lambda call, _: call(), (501, "sandbox_capabilities_unavailable"))
through("agents.list", lambda call, _: call(), (501, "managed_agents_unavailable"))
through("compute.list", lambda call, _: call(), (404, "not_found"))
through("ssh_keys.list", lambda call, _: call(), (404, "not_found"))
through("rl.list_environments", lambda call, _: call(), (404, "not_found"))
