import type { Queryer, Tx } from "../../infra/db/database.ts";

/** An asset as a runner needs it. */
export interface PinnedAsset {
  id: string;
  name: string;
  /** SHA-256 of the stored bytes, in hex: their address in the object store of assets. */
  sha256: string;
  bytes: number;
  /** `tar`: unpack it; its paths and types are checked. `file`: put it down under the asset's name. */
  format: "tar" | "file";
}

/** JSON pointers of references: one for all of them (`/inputs` gives `/inputs/0`, …), or one for each index. */
export type ReferenceField = string | ((index: number) => string);

/**
 * Assets for whoever runs work. References are refused as `asset_not_found` (400), `asset_not_ready`
 * (409) or, where the work's data may be in some `regions` only and the asset is of another, `asset_region` (400).
 */
export interface AssetPort {
  /** Refuses unless every asset is there and ready. A single id is refused at `field` itself. */
  check(
    q: Queryer,
    ask: { tenantId: string; assetIds: readonly string[]; field: ReferenceField; regions?: readonly string[] },
  ): Promise<void>;
  /**
   * Keeps assets from deletion until `release`. Once a holder has an asset, pinning it again changes nothing. Answers in
   * the order of `assetIds`.
   */
  pin(
    tx: Tx,
    ask: {
      tenantId: string;
      assetIds: readonly string[];
      holderId: string;
      now: Date;
      field?: ReferenceField;
      regions?: readonly string[];
    },
  ): Promise<PinnedAsset[]>;
  /** Lets go of all assets of a holder. */
  release(tx: Tx, holderId: string, now: Date): Promise<void>;
}

/** A version of a secret that a holder keeps. */
export interface PinnedSecret {
  name: string;
  secretId: string;
  version: number;
}

/** Secrets for whoever runs work. References are refused as `secret_not_found` (400). */
export interface SecretPort {
  /**
   * Refuses unless every reference, a name or a `sec_` id, is to a secret in use; the field is `field/index`. Answers
   * their names.
   */
  check(q: Queryer, ask: { tenantId: string; names: readonly string[]; field: string }): Promise<string[]>;
  /**
   * Keeps the newest version of every secret that `names` refers to, by name or `sec_` id, for the holder until
   * `release`. A secret that the holder has already keeps its version, whatever was written or retired since. Answers in
   * the order of `names`; two references may mean one secret.
   */
  pin(
    tx: Tx,
    ask: { tenantId: string; names: readonly string[]; holderId: string; now: Date; field?: string },
  ): Promise<PinnedSecret[]>;
  /** The values that a holder keeps, by name. For the hand-over to a run only: never to be logged, stored or answered. */
  reveal(q: Queryer, ask: { tenantId: string; holderId: string }): Promise<{ name: string; value: string }[]>;
  /** Lets go of all secrets of a holder. */
  release(tx: Tx, holderId: string, now: Date): Promise<void>;
}

/** What a body wants of a connection: the credential in a run's environment, or a table for an output. */
export type ConnectionPurpose = "live" | "sink";

/** A body's reference to a connection, by name or id. */
export interface ConnectionReference {
  nameOrId: string;
  purpose: ConnectionPurpose;
  /** JSON pointer of the reference. */
  field: string;
}

/** A connection as it was when its use was admitted; nothing that happens to it later changes this. */
export interface AdmittedConnection {
  connectionId: string;
  name: string;
  kind: "postgres" | "neon" | "supabase" | "wandb";
  secretId: string;
  secretVersion: number;
  /** Hosts that a run with the credential must reach. */
  egressHosts: string[];
  entity: string | null;
  project: string | null;
  /** Under which name `SecretPort.reveal` gives the holder the credential. */
  credentialName: string;
}

/**
 * Connections for whoever runs work. References are refused as `connection_not_found` (400), `connection_kind` (400),
 * `connection_scope` (403), `connection_inactive` (409) or, for a run's environment, `live_mode_required` (409).
 */
export interface ConnectionPort {
  /** Refuses what `pin` would refuse; takes nothing. Answers in the order of `references`. */
  check(
    q: Queryer,
    ask: { tenantId: string; references: readonly ConnectionReference[] },
  ): Promise<AdmittedConnection[]>;
  /** As `check`, and keeps the connections from deletion and their credentials from destruction until `release`. */
  pin(
    tx: Tx,
    ask: { tenantId: string; references: readonly ConnectionReference[]; holderId: string; now: Date },
  ): Promise<AdmittedConnection[]>;
  /** Lets go of all connections of a holder and of their credentials. */
  release(tx: Tx, holderId: string, now: Date): Promise<void>;
}

/** A team's account at GitHub, for whoever fetches its private repositories. */
export interface GithubAccountPort {
  /** The account's name and token; null when none is connected. Never to be logged, stored or answered. */
  reveal(q: Queryer, ask: { tenantId: string }): Promise<{ login: string; token: string } | null>;
}

/** Signs what is sent to a team's webhook. */
export interface WebhookSigner {
  /** Lower-case hex HMAC-SHA256 over `timestamp.body`, keyed by the secret's bytes. */
  sign(body: Uint8Array, secret: string, timestampSeconds: number): string;
}

/** Which input of a run needs access to a bucket. */
export interface BucketCredentialsAsk {
  tenantId: string;
  workloadId: string;
  stageId: string;
  generation: number;
  /** Name of the input. */
  input: string;
  /** `s3://…` or `gs://…`, without a query. */
  uri: string;
  region: string;
  bytes: number;
  /** Hex; null where the input does not say. */
  sha256: string | null;
}

/** Short-lived access to one object. For the hand-over to a run only: never to be logged, stored or answered. */
export type BucketCredentials =
  | { scheme: "s3"; accessKeyId: string; secretAccessKey: string; sessionToken: string | null; expiresAt: Date }
  | { scheme: "gs"; accessToken: string; expiresAt: Date };

export type BucketCredentialsAnswer =
  | { outcome: "granted"; credentials: BucketCredentials }
  /** After the last try; `error` is a word of the delivery list. */
  | { outcome: "unavailable"; error: string };

/** Asks a team's webhook for access to a bucket, in one synchronous exchange that is signed like a delivery. */
export interface BucketCredentialsPort {
  /** Up to three tries of at most ten seconds each. Never rejects for what the receiver does. */
  request(ask: BucketCredentialsAsk, signal: AbortSignal): Promise<BucketCredentialsAnswer>;
}

export type LoadState = "pending" | "loading" | "loaded" | "failed";

/** How loading an output into its table stands. */
export interface OutputLoad {
  workloadId: string;
  stageId: string;
  generation: number;
  /** Of the output. */
  name: string;
  state: LoadState;
  /** Rows that were loaded; null before and after a failure. */
  rowCount: number | null;
  /** One word on why it failed; null otherwise. */
  error: string | null;
}

/** Loads of outputs into tables, for whoever shows outputs. */
export interface LoadPort {
  /** The loads of some workloads' outputs, in order of stage, generation and name. */
  ofWorkloads(q: Queryer, ask: { tenantId: string; workloadIds: readonly string[] }): Promise<OutputLoad[]>;
}
