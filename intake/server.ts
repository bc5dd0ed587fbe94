import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { WebSocket } from "ws";
import type { Database } from "../infra/db/database.ts";
import type { Clock } from "../infra/kernel/clock.ts";
import { LIMITS } from "../infra/kernel/limits.ts";
import { dismissSocket } from "../infra/net/dismiss-socket.ts";
import { Newcomers } from "../infra/net/newcomers.ts";
import { type ObjectStore, ObjectTooLarge, StorageFull, StoreUnavailable } from "../infra/objects/object-store.ts";
import { MAX_FRAME_BYTES } from "../infra/runner/protocol.ts";
import { stagedObjects } from "../subgraphs/compute/lifecycle/order-spec.ts";
import type { Session } from "../subgraphs/compute/lifecycle/session.ts";
import { ResultBeingRemoved, storeResult } from "../subgraphs/compute/output/result-object.commands.ts";
import { Placement } from "../subgraphs/compute/placement/placement.entity.ts";
import { Stage } from "../subgraphs/compute/stage/stage.entity.ts";
import { parseHostFrame } from "./frames.ts";
import type { Intake } from "./session-hub.ts";

/** Frames of one connection that may be under way before it is no longer read. */
const MAX_OPEN_FRAMES = 64;
/** Answers that a host may leave unread before its connection is cut. */
const MAX_UNREAD_BYTES = 4 * MAX_FRAME_BYTES;

/** The close code after which a host connects again. */
const TRY_AGAIN_LATER = 1013;

export interface IntakeServerDeps {
  db: Database;
  intake: Intake;
  /** Where assets are read from. */
  assets: ObjectStore;
  /** Where outputs are put. */
  outputs: ObjectStore;
  clock: Clock;
  /** Connections on which no order was opened so far. */
  hostsWithoutOrder?: number;
}

/** The runner protocol on Fastify. `@fastify/websocket` must be registered already. */
export async function registerIntake(app: FastifyInstance, deps: IntakeServerDeps): Promise<void> {
  const newcomers = new Newcomers(deps.hostsWithoutOrder ?? LIMITS.hostsWithoutOrder);
  app.get("/runner/v1/stream", { websocket: true }, (socket) => serveHost(socket, deps.intake, newcomers));
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (_request, payload, done) => done(null, payload)); // bytes stream through
    scope.get("/runner/v1/orders/:orderId/objects/:sha256", (request, reply) => sendObject(request, reply, deps));
    scope.put("/runner/v1/orders/:orderId/objects", { bodyLimit: Number.MAX_SAFE_INTEGER }, (request, reply) =>
      takeObject(request, reply, deps),
    );
  });
}

function serveHost(socket: WebSocket, intake: Intake, newcomers: Newcomers): void {
  const isKnownOrGone = newcomers.enter(() => dismissSocket(socket, TRY_AGAIN_LATER, "open an order"));
  socket.on("close", isKnownOrGone);
  const connection = intake.connect(
    (frame) => (socket.bufferedAmount > MAX_UNREAD_BYTES ? socket.terminate() : socket.send(JSON.stringify(frame))),
    () => socket.close(1011),
    isKnownOrGone,
  );
  let open = 0;
  socket.on("message", (data: Buffer, binary: boolean) => {
    const frame = binary || data.length > MAX_FRAME_BYTES ? null : parseHostFrame(data.toString("utf8"));
    if (!frame) return socket.close(1008, "not a frame of runner protocol 1");
    if (++open >= MAX_OPEN_FRAMES) socket.pause();
    void connection.receive(frame).finally(() => {
      if (--open < MAX_OPEN_FRAMES) socket.resume();
    });
  });
  socket.on("close", () => connection.closed());
  socket.on("error", () => socket.terminate()); // `close` follows and cleans up
}

async function sessionOf(request: FastifyRequest, intake: Intake): Promise<Session | null> {
  const { orderId } = request.params as { orderId: string };
  const token = /^Bearer (\S{1,512})$/.exec(request.headers.authorization ?? "")?.[1];
  return token ? intake.authorize(orderId, token) : null;
}

/** Sends an object that the order's spec names, and no other. */
async function sendObject(request: FastifyRequest, reply: FastifyReply, deps: IntakeServerDeps): Promise<unknown> {
  const session = await sessionOf(request, deps.intake);
  if (!session) return reply.code(401).send({ error: "unauthorized", message: "The session is not the order's." });
  const { sha256 } = request.params as { sha256: string };
  const placement = await deps.db.row(Placement, "where t.id = $1", [session.placementId]);
  const stage = placement && (await deps.db.row(Stage, "where t.id = $1", [placement.stageRunId]));
  const opened = stage && stagedObjects(stage).has(sha256) ? await deps.assets.open(sha256) : null;
  if (!opened) return reply.code(404).send({ error: "not_found", message: "The order names no such object." });
  return reply.header("content-length", opened.bytes).type("application/octet-stream").send(opened.stream);
}

/** Stores bytes of an output. Repeating it stores the same object; nothing refers to it before the `output` record. */
async function takeObject(request: FastifyRequest, reply: FastifyReply, deps: IntakeServerDeps): Promise<unknown> {
  const session = await sessionOf(request, deps.intake);
  if (!session) return reply.code(401).send({ error: "unauthorized", message: "The session is not the order's." });
  try {
    const bytes = (request.body ?? Readable.from([])) as AsyncIterable<Uint8Array>; // an empty file has no body
    const results = { db: deps.db, objects: deps.outputs, clock: deps.clock };
    return await storeResult(results, bytes, { maxBytes: LIMITS.outputBytes });
  } catch (error) {
    if (error instanceof ObjectTooLarge)
      return reply
        .code(413)
        .send({ error: "body_too_large", message: `An output has at most ${error.maxBytes} bytes.` });
    if (error instanceof StorageFull || error instanceof StoreUnavailable || error instanceof ResultBeingRemoved)
      return reply.code(503).send({ error: "unavailable", message: "The object store takes nothing just now." });
    throw error;
  }
}
