"""Runs checks of one client release and prints one JSON line for each."""

import json
import sys
import time
import traceback


class Absent(Exception):
    """The release under test has no such call."""


class Checks:
    """Named checks in the order in which they were declared."""

    def __init__(self):
        self._declared = []

    def check(self, name):
        """Declares a function of one argument, the world, as the check of that name."""

        def declare(body):
            self._declared.append((name, "served", body))
            return body

        return declare

    def refused(self, name, status, code):
        """Declares a call that this release of the platform refuses: the check fails once it does anything else."""

        def declare(body):
            self._declared.append((f"{name}: {status} {code}", "refused", refusal(body, status, code)))
            return body

        return declare

    def run(self, world):
        """Runs them all; one that fails keeps none of the others from running."""
        for name, kind, body in self._declared:
            started = time.monotonic()
            outcome, detail = outcome_of(body, world)
            seconds = round(time.monotonic() - started, 3)
            line = {"check": name, "kind": kind, "outcome": outcome, "detail": detail, "seconds": seconds}
            print(json.dumps(line), flush=True)


def outcome_of(body, world):
    try:
        body(world)
    except Absent as absent:
        return "absent", str(absent)
    except Exception as error:  # whatever it is, it is this check's failure
        last = traceback.extract_tb(sys.exc_info()[2])[-1]
        return "failed", f"{type(error).__name__}: {error} ({last.filename.rsplit('/', 1)[-1]}:{last.lineno})"
    return "passed", ""


def refusal(body, status, code):
    """A check that the call raises the client's error with this status and code."""

    def refuses(world):
        error = raised(world.nodus.NodusError, lambda: body(world))
        # Older releases read the code of an error from one of the two documented members only.
        same((error.status_code, error.code or error.payload.get("code")), (status, code))

    return refuses


def part(owner, name):
    """The attribute of that name; releases that lack it have no such call."""
    if not hasattr(owner, name):
        raise Absent(f"no {name}")
    return getattr(owner, name)


def same(found, wanted):
    """Fails, and shows both, unless they are equal."""
    if found != wanted:
        raise AssertionError(f"found {found!r} in place of {wanted!r}")


def holds(condition, what):
    """Fails with what should have held."""
    if not condition:
        raise AssertionError(what)


def raised(kind, call):
    """The error of that kind that the call raises."""
    try:
        answer = call()
    except kind as error:
        return error
    raise AssertionError(f"answered {str(answer)[:200]!r} in place of an error")


def until(what, answer, seconds=60):
    """The first true answer; fails when there is none in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = answer()
        if found:
            return found
        time.sleep(0.2)
    raise AssertionError(f"waited {seconds} s in vain: {what}")
