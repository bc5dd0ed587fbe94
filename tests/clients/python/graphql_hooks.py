"""What schemathesis does not know of the graph: its scalars, ids that exist, and how a fault differs from a refusal."""

import json
import os

import schemathesis
from hypothesis import strategies
from schemathesis.graphql import nodes

IDS = json.loads(os.environ.get("NODUS_CLIENTS_IDS", "[]"))
LARGEST_SAFE = 2**53 - 1
LARGEST_INT = 2**31 - 1
FAULTS = ("internal_error", "INTERNAL_SERVER_ERROR")

# Often something that exists, and often a good size of a page: otherwise most requests end at the first look.
ids = strategies.sampled_from(IDS) | strategies.text(max_size=40) if IDS else strategies.text(max_size=40)
sizes = strategies.integers(1, 100) | strategies.integers(-LARGEST_INT, LARGEST_INT)
whole = strategies.integers(-LARGEST_SAFE, LARGEST_SAFE)
dollars = strategies.floats(-1e12, 1e12, allow_nan=False)
schemathesis.graphql.scalar("ID", ids.map(nodes.String))
schemathesis.graphql.scalar("Int", sizes.map(nodes.Int))
schemathesis.graphql.scalar("SafeInt", whole.map(nodes.Int))
schemathesis.graphql.scalar("Usd", dollars.map(nodes.Float))


@schemathesis.check
def errors_are_refusals(_context, response, _case):
    """Every error has a code and a path or a message for the caller, and none is a fault of the platform's own."""
    assert response.status_code < 500, f"answered {response.status_code}"
    for error in response.json().get("errors", []):
        code = error.get("extensions", {}).get("code")
        assert code and error.get("message"), f"an error without code or message: {error}"
        assert code not in FAULTS, f"a fault: {error}"
