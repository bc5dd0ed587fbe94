import type { Readable } from "node:stream";
import type { DocumentNode } from "graphql";
import type { Actor } from "../infra/kernel/actor.ts";

/** Who asks, and for how long. */
export interface Caller {
  readonly actor: Actor;
  readonly requestId: string;
  /** Aborts when the caller goes away. */
  readonly signal: AbortSignal;
}

/** One GraphQL operation on behalf of a REST caller. */
export interface GraphRequest extends Caller {
  /** Parsed once at start; the same object each time, so that plans can hang on it. */
  readonly document: DocumentNode;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** A GraphQL error as the graph hands it on; refusals carry code, status and fix in the extensions. */
export interface GraphError {
  readonly message: string;
  readonly path?: readonly (string | number)[];
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/** The answer after completion: nulls have already moved where the specification puts them. */
export interface GraphResult {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly GraphError[];
}

/** A committed output file, authorised and not yet opened. */
export interface OutputContent {
  readonly sha256: string;
  readonly byteCount: number;
  /** The name that a browser should save it under. */
  readonly fileName: string;
  open(): Readable | Promise<Readable>;
}

/** The stored text of one attempt, authorised and not yet opened. */
export interface LogContent {
  readonly stageId: string;
  readonly generation: number;
  /** Of the bytes that follow; null when it is not known. */
  readonly sha256: string | null;
  /** A committed artifact, or what the live capture holds so far. */
  readonly source: "committed" | "live-snapshot";
  /** Whether the capture dropped bytes; only shown of a snapshot. */
  readonly truncated: boolean;
  readonly byteCount: number | null;
  open(): Readable | Promise<Readable>;
}

/** How far an import is when its caller is answered. */
export interface ImportOutcome {
  readonly assetId: string;
  /** `reused`: an asset that was there. `admitted`: it goes on. */
  readonly outcome: "ready" | "reused" | "admitted";
}

/**
 * Raw streams, and what takes long. The composition root implements them on the graph (which authorises) and the object store;
 * they refuse with `Refused` or with a graph error.
 */
export interface BytesPorts {
  /** Stores a body that is read to its end; nothing stays when it breaks off. Gives the ready asset's id. */
  uploadAsset(request: Caller & { readonly name: string; readonly content: Readable }): Promise<string>;
  /**
   * Imports what the body asks for: a source until its asset is ready, a query until it is admitted. A failed import is
   * refused with the reason. When the caller goes away, only the waiting ends.
   */
  importAsset(request: Caller & { readonly input: Readonly<Record<string, unknown>> }): Promise<ImportOutcome>;
  openOutput(
    request: Caller & { readonly workloadId: string; readonly name: string; readonly stageId: string | null },
  ): Promise<OutputContent>;
  openLog(
    request: Caller & {
      readonly workloadId: string;
      readonly stageId: string | null;
      readonly generation: number | null;
    },
  ): Promise<LogContent>;
}

/** Everything that the REST face asks of the rest of the platform. */
export interface RestPorts {
  /** The actor behind an Authorization header; null when it is absent, wrong, expired or revoked. */
  authenticate(authorization: string | undefined): Promise<Actor | null>;
  execute(request: GraphRequest): Promise<GraphResult>;
  /** Counts a stream of the actor's team until it is closed; throws `Refused` when the team may have no more of them. */
  openStream(actor: Actor): { close(): void };
  readonly bytes: BytesPorts;
}
