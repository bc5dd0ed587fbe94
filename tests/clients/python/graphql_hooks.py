"""What schemathesis does not know of the graph: its own scalars, and how a fault differs from a refusal."""

import schemathesis
from hypothesis import strategies
from schemathesis.graphql import nodes

LARGEST_SAFE = 2**53 - 1
FAULTS = ("internal_error", "INTERNAL_SERVER_ERROR")

whole = strategies.integers(-LARGEST_SAFE, LARGEST_SAFE)
dollars = strategies.floats(-1e12, 1e12, allow_nan=False)
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
