"""The command line that comes with the client."""

import json
import os
import pathlib
import subprocess
import sys

from harness import Absent, Checks, holds, same

checks = Checks()
check = checks.check


def nodus(world, *arguments, stdin="", code=0):
    """What a command printed on stdout; fails unless it ends with that code."""
    program = pathlib.Path(sys.executable).parent / "nodus"
    environment = {**os.environ, "HOME": str(world.folder), "NO_COLOR": "1"}
    ended = subprocess.run([program, *arguments], input=stdin, capture_output=True, text=True, timeout=180,
                           cwd=world.folder, env=environment)
    if "invalid choice" in ended.stderr:
        raise Absent(f"no command {arguments[0]}")
    same((ended.returncode, ended.stderr if ended.returncode != code else ""), (code, ""))
    return ended.stdout


@check("cli: login finds that the key is good")
def login(world):
    holds("Already signed in" in nodus(world, "login"), "it asks who the key's holder is")


@check("cli: run, submit, wait")
def run(world):
    world.file("nodus.toml", 'command = ["sh", "-c", "echo from the command line"]\n')
    holds("completed" in nodus(world, "run", "nodus.toml", "--poll", "0.2").lower(), "run says how it ended")
    (word,) = [word for word in nodus(world, "submit", "nodus.toml").split() if word.startswith("wl_")]
    same(json.loads(nodus(world, "wait", word, "--poll", "0.2", "--json"))["status"], "completed")


@check("cli: list, status, events, artifacts, ledger, explain, logs")
def reading(world):
    run = world.finished.id
    holds(run in nodus(world, "list", "--json"), "list has it")
    same(json.loads(nodus(world, "status", run, "--json"))["id"], run)
    holds("workload.completed" in nodus(world, "events", run), "events tell the end")
    holds("kept.txt" in nodus(world, "artifacts", run), "artifacts name the file")
    holds(json.loads(nodus(world, "ledger", run, "--json")), "the ledger has entries")
    holds("local-cpu" in nodus(world, "explain", run), "explain names the machine")
    same(nodus(world, "logs", run), "first\nsecond\n")


@check("cli: download")
def download(world):
    nodus(world, "download", world.finished.id)
    same([path.read_text() for path in world.folder.rglob("kept.txt")][-1:], ["kept\n"])


@check("cli: cancel")
def cancel(world):
    run = world.run("sleep 300")
    nodus(world, "cancel", run.id)
    same(run.wait(poll_seconds=0.2, timeout_seconds=60).succeeded, False)


@check("cli: upload, assets")
def assets(world):
    world.file("line.csv", "a\n1\n")
    uploaded = nodus(world, "upload", "line.csv")
    (asset,) = {word.strip(".,\"'") for word in uploaded.split() if word.strip("\"'").startswith("asset_")}
    holds(asset in nodus(world, "assets"), "the list has it")


@check("cli: secrets")
def secrets(world):
    name = world.name("TYPED")
    nodus(world, "secret", "set", name, stdin="a typed value")
    holds(name in nodus(world, "secret", "ls"), "the list has it")
    nodus(world, "secret", "rm", name)


@check("cli: connections")
def connections(world):
    name = world.connection
    holds(name in nodus(world, "connection", "ls"), "the list has it")


@check("cli: pools")
def pools(world):
    holds("pool_" in nodus(world, "pools", "create", world.name("typed")), "it says the pool's id")
