"""Checks that a request is from Nodus and fresh. Needs nothing but the standard library."""

import hashlib
import hmac
import re
import time

TOLERANCE_SECONDS = 300
"""Seconds that a signature is good for, and that the two clocks may differ by."""


def is_from_nodus(secret, timestamp, signature, body, now_seconds=None):
    """Whether a request is from Nodus and fresh.

    secret: what the PUT of the webhook answered
    timestamp, signature: headers X-Nodus-Timestamp and X-Nodus-Signature; None where one is missing
    body: the bytes as they arrived, before any parsing
    """
    if timestamp is None or signature is None:
        return False
    if not re.fullmatch(r"[0-9]{1,12}", timestamp):
        return False
    now = time.time() if now_seconds is None else now_seconds
    if abs(now - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    signed = timestamp.encode("ascii") + b"." + body
    expected = hmac.new(secret.encode("utf-8"), signed, hashlib.sha256).hexdigest()
    return hmac.compare_digest(signature.encode("utf-8"), expected.encode("ascii"))
