"""The team's webhook: set, read, deleted, and a receiver that verifies what comes."""

import http.server
import importlib.util
import json
import ssl
import threading

from harness import Checks, holds, raised, same, until

checks = Checks()
check = checks.check


@check("webhooks: set, get, delete")
def webhook(world):
    made = world.client.set_webhook("https://localhost:9/hook", secret="a secret of my own")
    same((made["url"], made["secret"]), ("https://localhost:9/hook", "a secret of my own"))
    read = world.client.get_webhook()
    holds(read["enabled"] and "secret" not in read, "reading it back shows no secret")
    world.client.delete_webhook()
    raised(world.nodus.NotFoundError, world.client.get_webhook)


@check("webhooks: a receiver verifies what comes")
def receiver(world):
    with Receiver(world.settings) as receiver:
        secret = world.client.set_webhook(receiver.url)["secret"]
        try:
            run = world.finish("true")
            told = lambda: "workload.settled" in receiver.types(run.id)
            until("the last event has come", told)
        finally:
            world.client.delete_webhook()
        holds({"workload.accepted", "workload.completed"} <= set(receiver.types(run.id)), "the others came too")
        holds(receiver.all_genuine(secret), "all are signed by the secret")
        holds(not receiver.all_genuine(secret + "x"), "and by no other")


class Receiver:
    """An HTTPS server of this machine that keeps what it is sent."""

    def __init__(self, settings):
        self._verify = example(settings["verifyExample"])
        self._received = []
        received = self._received

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                received.append((dict(self.headers.items()), body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings["certFile"], settings["keyFile"])
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://localhost:{self._server.server_port}/hook"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def types(self, workload_id):
        bodies = [json.loads(body) for _, body in list(self._received)]
        return [body["event_type"] for body in bodies if body.get("workload_id") == workload_id]

    def all_genuine(self, secret):
        return all(
            self._verify(secret, lower["x-nodus-timestamp"], lower["x-nodus-signature"], body)
            for lower, body in ((lower_case(headers), body) for headers, body in self._received)
        )


def lower_case(headers):
    return {name.lower(): value for name, value in headers.items()}


def example(path):
    """The function that the documentation gives to receivers."""
    spec = importlib.util.spec_from_file_location("verify_webhook", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.is_from_nodus
