"""What the checks of one release share: its client, a finished run, and the servers that stand for the outside."""

import functools
import json
import os
import pathlib
import tempfile
import uuid

import nodus

from harness import part


class World:
    """One release against one platform. Everything in it is made when it is first asked for."""

    def __init__(self):
        self.nodus = nodus
        self.settings = json.loads(os.environ["NODUS_CLIENTS_WORLD"])
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ["NODUS_CLIENTS_FOLDER"]))
        self.client = nodus.Client()

    @functools.cached_property
    def finished(self):
        """A run that is over: it printed two lines and left a declared file."""
        run = self.run("echo first; echo second; sleep 1; mkdir -p outputs; echo kept > outputs/kept.txt",
                       outputs={"kept.txt": "outputs/kept.txt"})
        return run.wait(poll_seconds=0.2, timeout_seconds=120)

    def run(self, script, **options):
        """Submits a shell script."""
        return self.client.run(command=["sh", "-c", script], **options)

    def finish(self, script, **options):
        """Submits a shell script and waits for its end."""
        return self.run(script, **options).wait(poll_seconds=0.2, timeout_seconds=120)

    def file(self, name, text):
        """A local file with that content."""
        path = self.folder / name
        path.write_text(text)
        return path

    def name(self, start):
        """A name that nobody has yet."""
        return f"{start}_{uuid.uuid4().hex[:8]}"

    @functools.cached_property
    def connection(self):
        """A verified connection to the customer's database, by name."""
        connections = part(self.client, "connections")
        secret = self.name("SHOP")
        self.client.secrets.put(secret, self.settings["databaseSecret"])
        name = self.name("shop")
        connections.create(name, "postgres", secret=secret, scope="readwrite")
        return name


def status_of(run):
    """A status in the wire's word, whatever the release makes of it."""
    return getattr(run.status, "value", run.status)
