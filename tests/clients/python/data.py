"""What runs use: secrets, assets, connections, pools, recipes, workspaces."""

from harness import Checks, holds, part, raised, same, until
from world import status_of

checks = Checks()
check = checks.check


@check("secrets")
def secrets(world):
    store = part(world.client, "secrets")
    name = world.name("TOKEN")
    same(store.put(name, "swordfish-of-the-check")["name"], name)
    (row,) = [row for row in store.list() if row["name"] == name]
    holds("value" not in row, "a list never has values")
    run = world.finish(f"printf %s $NODUS_SECRET_{name} | wc -c; echo $NODUS_SECRET_{name}", policy={"secret_refs": [name]})
    same(status_of(run), "completed")
    holds(run.logs().split()[0] == "22" and "swordfish" not in run.logs(), "the run has it and the log has not")
    store.delete(name)
    holds(all(row["name"] != name for row in store.list()), "a deleted secret is not listed")
    raised(world.nodus.NotFoundError, lambda: store.delete(name))


@check("assets: upload, list, delete")
def assets(world):
    asset = world.client.assets.upload(world.file("rows.csv", "a,b\n1,2\n"))
    same((asset.state, asset.name, asset.stored_bytes), ("ready", "rows.csv", 8))
    holds(any(row.id == asset.id for row in world.client.assets.list()), "the list has it")
    world.client.assets.delete(asset.id)
    holds(all(row.id != asset.id for row in world.client.assets.list()), "the list has it no more")


@check("assets: get")
def get_asset(world):
    get = part(world.client.assets, "get")
    asset = world.client.assets.upload(world.file("one.csv", "a\n1\n"))
    same((get(asset.id).id, get(asset.id).state), (asset.id, "ready"))
    missing = lambda: get("asset_01a22a36f4f370008000003abe502137")
    raised(world.nodus.NotFoundError, missing)


@check("assets: a run from uploaded code and data")
def asset_run(world):
    code = world.client.assets.upload(world.file("main.sh", "cat $NODUS_INPUT_rows/*; echo done\n"))
    rows = world.client.assets.upload(world.file("rows.csv", "a,b\n1,2\n"))
    run = world.client.run(command=["sh", "main.sh"], source_asset_id=code.id, inputs=[{"name": "rows", "asset_id": rows.id}])
    run.wait(poll_seconds=0.2, timeout_seconds=120)
    same(run.logs(), "a,b\n1,2\ndone\n")


@check("assets: import a URL")
def import_url(world):
    asset = world.client.assets.import_url(world.settings["fileUrl"])
    same((asset.state, asset.stored_bytes), ("ready", len(world.settings["fileText"])))
    refused = lambda: world.client.assets.import_url("https://localhost:1/nobody.csv")
    raised(world.nodus.NodusError, refused)


@check("assets: import a repository and run it")
def import_github(world):
    asset = world.client.assets.import_github(world.settings["repository"], token="ghp_of_the_check")
    same((asset.state, asset.kind), ("ready", "github"))
    run = world.client.run(command=["sh", "say.sh"], source_asset_id=asset.id).wait(poll_seconds=0.2, timeout_seconds=120)
    same(run.logs(), "imported\n")


@check("assets: import files of a dataset")
def import_huggingface(world):
    asset = world.client.assets.import_huggingface(world.settings["dataset"], files=["data/*.csv"])
    same(asset.state, "ready")
    command = ["sh", "-c", "cd $NODUS_INPUT_set && find . -type f && cat data/train.csv"]
    run = world.client.run(command=command, inputs=[{"name": "set", "asset_id": asset.id}])
    run.wait(poll_seconds=0.2, timeout_seconds=120)
    same(run.logs(), "./data/train.csv\na,b\n1,2\n")


@check("connections: create, list, get, verify, delete")
def connections(world):
    connections = part(world.client, "connections")
    name = world.connection
    record = connections.get(name)
    same((record["name"], record["kind"]), (name, "postgres"))
    same(connections.get(record["id"])["id"], record["id"])
    holds(any(row["name"] == name for row in connections.list()), "the list has it")
    holds(connections.verify(name)["verified_at"] >= record["verified_at"], "verifying moves the time on")
    other = world.name("other")
    world.client.secrets.put(other.upper(), world.settings["databaseSecret"])
    connections.create(other, "postgres", secret=other.upper())
    connections.delete(other)
    raised(world.nodus.NotFoundError, lambda: connections.get(other))


@check("connections: a wrong password is refused")
def unverified(world):
    connections = part(world.client, "connections")
    secret = world.name("WRONG")
    world.client.secrets.put(secret, world.settings["wrongDatabaseSecret"])
    error = raised(world.nodus.NodusError, lambda: connections.create(world.name("x"), "postgres", secret=secret))
    same((error.status_code, error.code), (422, "verification_failed"))


@check("assets: import a query's rows")
def import_query(world):
    import_query = part(world.client.assets, "import_query")
    asset = import_query(world.connection, "select n from generate_series(1, 3) as n", format="csv")
    same(asset.state, "ready")
    run = world.client.run(command=["sh", "-c", "cat $NODUS_INPUT_rows/*"], inputs=[{"name": "rows", "asset_id": asset.id}])
    run.wait(poll_seconds=0.2, timeout_seconds=120)
    same(run.logs().split(), ["n", "1", "2", "3"])


@check("outputs: load into a table, and load again")
def load_output(world):
    reload_output = part(world.client, "reload_output")
    sink = {"connection": world.connection, "table": world.name("loaded")}
    outputs = {"rows.csv": {"path": "rows.csv", "sink": sink}}
    run = world.finish("printf 'id,name\\n1,ann\\n2,bob\\n' > rows.csv", outputs=outputs)
    same(status_of(run), "completed")
    state = lambda: [(output.sink_state, output.sink_rows) for output in run.outputs()]
    until("both rows are in the table", lambda: state() == [("loaded", 2)])
    holds(reload_output(run.id, "rows.csv", stage="main"), "a load may be asked for again")


@check("pools")
def pools(world):
    pools = part(world.client, "pools")
    pool = pools.create(world.name("rack"))
    same((pools.get(pool.id).name, pool.kind), (pool.name, "hosts"))
    holds(any(row.id == pool.id for row in pools.list()), "the list has it")


@check("RL recipes and events")
def recipes(world):
    rl = part(world.client, "rl")
    recipes = rl.list_recipes()
    holds(all(recipe.id and recipe.version for recipe in recipes), "every recipe has an id and a version")
    same(rl.events(world.finished.id).events, [])


@check("workspaces")
def workspaces(world):
    store = getattr(world.client, "volumes", None) or part(world.client, "workspaces")
    name = world.name("notes")
    made = store.create(name, size_gb=1)
    same((made["name"], made["size_gb"]), (name, 1))
    holds(any(row["id"] == made["id"] for row in store.list()), "the list has it")
