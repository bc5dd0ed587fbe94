/** Every limit of the platform by name, with its unit last. A refusal names the limit that it enforces. */
export const LIMITS = {
  jsonBodyBytes: 2 * 1024 * 1024,
  idempotencyKeyLength: 256,
  workloadNameLength: 120,
  workloadInputs: 8,
  workloadSecretRefs: 32,
  workloadEgressHosts: 128,
  workloadStages: 64,
  /** Pages that a workload's output may link it to. */
  workloadLinks: 32,
  stageCommandArguments: 4096,
  stageCommandBytes: 128 * 1024,
  stageOutputs: 64,
  checkpointPaths: 64,
  checkpointPathBytes: 512,
  listPageDefault: 50,
  listPageMax: 100,
  eventPage: 100,
  liveLogPageChunks: 16,
  logChunkBytes: 64 * 1024,
  /** Live capture per generation. */
  logCaptureBytes: 8 * 1024 * 1024,
  /** Committed log per generation; a marker follows the last byte when it is reached. */
  logCommittedBytes: 64 * 1024 * 1024,
  liveLogRetentionHours: 24,
  /** Outputs, logs and manifests of a workload that ended; a setting may say otherwise. */
  resultRetentionDays: 90,
  /** Where a workload ran is known for this long after its end. */
  placementHistoryMs: 365 * 24 * 3_600_000,
  /** A removal of stored bytes that began so long ago has died; a store answers, or fails, well before. */
  removalLeaseMs: 240_000,
  /** Whoever stores bytes that are just being removed waits for so long. */
  removalWaitMs: 270_000,
  /** Stored bytes that nothing refers to are left alone for this long: something may be about to. */
  unusedObjectMs: 24 * 3_600_000,
  /** A job that no process knows waits for one that does for this long after it was due. */
  unknownJobMs: 30 * 24 * 3_600_000,
  /** Free space below which no workload is admitted, for what runs already to end well; a setting may say otherwise. */
  diskReserveBytes: 256 * 1024 * 1024,
  /** How long a link into the object store works. */
  directLinkSeconds: 15 * 60,
  rejectedOfferExamples: 50,
  /** Ranked offers that a process keeps of stages that it matched before. */
  rememberedCandidates: 100_000,
  heartbeatIntervalMs: 5_000,
  leaseMs: 90_000,
  /** The host kills this much before a lease or funding ends, so that its end proves the guest gone. */
  leaseMarginMs: 5_000,
  bootTimeoutMs: 60_000,
  bootTokenTtlMs: 600_000,
  offerQuarantineMs: 120_000,
  firstWindowMs: 60_000,
  cancelGraceMs: 5_000,
  assetBytes: 5 * 1024 * 1024 * 1024,
  assetQuotaBytes: 50 * 1024 * 1024 * 1024,
  assetFiles: 10_000,
  secretValueBytes: 4096,
  /** A guest's private /tmp. */
  guestTmpBytes: 1024 * 1024 * 1024,
  guestProcesses: 1024,
  guestOpenFiles: 16_384,
  outputBytes: 5 * 1024 * 1024 * 1024,
  graphqlDepth: 12,
  graphqlAliases: 30,
  graphqlCost: 20_000,
  graphqlBodyBytes: 1024 * 1024,
  graphqlTokens: 4_000,
  graphqlRootFields: 20,
  /** Documents that a gateway keeps parsed and validated. */
  graphqlDocuments: 2_000,
  /** How long one request to a subgraph may take; a stream only while it is opened. */
  subgraphTimeoutMs: 15_000,
  /** How long a query, a mutation, the opening of a subscription or one of its events may take, all its requests to subgraphs
   * together: less than the 30 seconds for which clients commonly wait. */
  operationTimeoutMs: 25_000,
  /** How long a request or a job waits for a free database connection. */
  databaseConnectionWaitMs: 15_000,
  /** How long a transaction may stand open without a statement: of a process that was frozen in the middle of a command it
   * ends then, with all locks that it holds. */
  idleTransactionMs: 10_000,
  /** How long a statement waits for a lock that somebody holds, where whoever sent it comes again by itself: longer than
   * PostgreSQL takes to find a deadlock, one second, which ends a wait better. */
  lockWaitMs: 2_000,
  /** The same for a command that a caller waits for. */
  requestLockWaitMs: 3_000,
  /** How long a team's command waits for its turn while something of the team is held; otherwise as for a connection. */
  commandTurnMs: 2_000,
  /** After a team's command has waited for a lock in vain, its commands go one at a time for at least this long. */
  heldTeamMs: 2_000,
  /** A team that asks for nothing meanwhile is taken as any other again after this. */
  heldTeamForgottenMs: 60_000,
  /** How long a migration waits for a lock at once; whoever uses the table waits behind it meanwhile. */
  migrationLockWaitMs: 500,
  /** After that others have this long before it tries again. */
  migrationPauseMs: 1_500,
  /** A migration that has not had its locks after this has failed, and with it the start. */
  migrationLockMs: 120_000,
  /** A stage is looked at again after this long when a row that it needs is still held by who was seen to hold it before. */
  heldStageMs: 2_000,
  /** The same when somebody else holds the row, such as one of many that each write it for a moment. */
  busyStageMs: 250,
  /** How long a gateway may go on without looking at a key again. */
  actorCacheMs: 5_000,
  /** How long a request waits to be told whom its key belongs to. */
  keyLookUpMs: 5_000,
  subscriptionsPerConnection: 200,
  /** Messages that began the operations which run on one socket, together. */
  connectionOperationBytes: 8 * 1024 * 1024,
  /** The id that a client gives to an operation of its socket. */
  operationIdLength: 256,
  /** A client's messages on one socket; what comes faster is read later. */
  socketMessagesPerSecond: 2_000,
  /** While so much waits for a socket's reader, nothing more is read from it. */
  socketBacklogBytes: 1024 * 1024,
  /**
   * A socket that has not been greeted is closed after this. Well above what a busy process takes for one turn: a timer that
   * is due is looked at before a greeting that has already come.
   */
  socketGreetingMs: 15_000,
  /** A socket that has shown no key is closed after this. */
  socketWithoutKeyMs: 60_000,
  /** Streams of a team that one gateway holds open: sockets, server-sent events, bytes that come or go; a setting may say otherwise. */
  openStreamsPerTeam: 2_000,
  /** Operations on a team's streams together: so many for each stream that it may have. */
  operationsPerStream: 10,
  /** Messages that began them, together; for each stream as well. */
  operationBytesPerStream: 128 * 1024,
  /** Streams of all callers that have shown no key: the oldest gives way. */
  openStreamsWithoutKey: 1_000,
  /** Connections at intake on which no order was opened so far: the oldest gives way, and connects again. */
  hostsWithoutOrder: 1_000,
  /** How long a client may take to send a request's body; a file that is taken in has as long as it needs. */
  requestBodyMs: 60_000,
  requestsPerKeyPerSecond: 2_000,
  /** Names of teams, members and keys, in characters. */
  displayNameLength: 200,
  emailLength: 254,
  /** Live names of a team. */
  secretsPerTeam: 1_000,
  /** A retired or replaced version outlives its retirement by this, longer while pinned. */
  retiredSecretMs: 7 * 24 * 3_600_000,
  assetNameBytes: 255,
  /** A path inside an archive. */
  assetPathBytes: 1_024,
  assetPathDepth: 64,
  /** How many times larger than its archive the content may be, beyond the floor. */
  assetArchiveRatio: 250,
  assetArchiveRatioFloorBytes: 64 * 1024 * 1024,
  /** Uploads and imports of a team that may be under way. */
  assetImportsAtOnce: 2,
  /** An upload that did not report for this long is dead. */
  assetUploadSilenceMs: 120_000,
  assetListMax: 500,
  /** From the admission of an import to its end, waiting included. */
  assetImportMs: 600_000,
  /** An import whose process did not report for this long is taken up by another, or failed. */
  assetImportLeaseMs: 30_000,
  /** Longest silence of a source. */
  assetSourceIdleMs: 30_000,
  assetUrlLength: 4_096,
  assetRefBytes: 255,
  /** Patterns that choose files. */
  assetImportPatterns: 100,
  /** Files that a source may list, chosen or not. */
  assetSourceFiles: 100_000,
  /** From the admission of a query's export to its end, waiting included. */
  exportMs: 600_000,
  /** Exports of a team that run at once: a worker has places for more, so that another team's find one. */
  exportsAtOnce: 1,
  exportSqlLength: 60_000,
  exportRows: 50_000_000,
  /** What the database sends for an export, as CSV. */
  exportBytes: 5 * 1024 * 1024 * 1024,
  /** A finished export answers the same request for this long. */
  exportReuseMs: 24 * 3_600_000,
  /** An export whose process did not report for this long has failed: it is not asked of the database a second time. */
  exportLeaseMs: 30_000,
  /** An export that waits longer than this is put into the queue again. */
  exportQueuedMs: 60_000,
  /** How long an export's database may take to let it in. */
  exportLoginMs: 15_000,
  /** How long it may take to answer what is no work: the beginning, the settings and the end of a transaction. */
  exportAnswerMs: 30_000,
  /** An output that is loaded into a table. */
  loadBytes: 5 * 1024 * 1024 * 1024,
  loadRows: 50_000_000,
  /** Columns of its file; the table has the platform's own as well. */
  loadColumns: 256,
  /** One CSV record, JSON line or Parquet footer of it. */
  loadRecordBytes: 8 * 1024 * 1024,
  /** One Parquet row group, decoded. */
  loadRowGroupBytes: 128 * 1024 * 1024,
  /** A deleted connection is kept for this long, and for longer while anything refers to it. */
  deletedConnectionMs: 30 * 24 * 3_600_000,
  /** Loads of a team that are done at once. */
  loadsAtOnce: 2,
  /** From taking a load up to its end. */
  loadMs: 1_800_000,
  /** A load whose process did not report for this long is taken up by another one. */
  loadLeaseMs: 30_000,
  /** A load that waits longer than this is put into the queue again. */
  loadQueuedMs: 60_000,
  /** Processes that may die of one load before it has failed. */
  loadAttempts: 5,
  /** Tries to write a run's final figures, the pauses doubling from `loadQueuedMs`. */
  loadRunAttempts: 8,
  /** How long a load's database may take to let it in. */
  loadLoginMs: 15_000,
  /** For one process that reads and writes tables in files. */
  columnarMemoryBytes: 512 * 1024 * 1024,
  /** A deleted asset can be read for this long. */
  deletedAssetMs: 30 * 24 * 3_600_000,
  poolNameBytes: 200,
  poolsPerTeam: 1_000,
  workspaceSizeGb: 1_024,
  workspacesPerTeam: 100,
  rlEventPageDefault: 100,
  rlEventPageMax: 200,
  /** Connections of a team that are not deleted. */
  connectionsPerTeam: 500,
  /** Region, branch, entity and project of a connection, in characters. */
  connectionLabelLength: 128,
  /** How long a connection's service may take to show that a credential works. */
  connectionVerifyMs: 5_000,
  /** What a database may say before somebody is logged in. */
  connectionLoginBytes: 1024 * 1024,
  /** What a database may say over one connection, rows that are copied out of it aside. */
  connectionSaidBytes: 1024 * 1024,
  /** A row that is copied out of a database, as it sends it: PostgreSQL's own largest. */
  connectionRowBytes: 1024 * 1024 * 1024,
  webhookUrlLength: 2_048,
  /** A secret that a customer chooses, in printable ASCII. */
  webhookSecretLengthMin: 16,
  webhookSecretLengthMax: 256,
  /** A delivery's body. */
  webhookBodyBytes: 256 * 1024,
  /** How long a receiver may take to answer. */
  webhookAnswerMs: 10_000,
  /** From the event, or from asking again, to the last attempt. */
  webhookRetriesMs: 24 * 3_600_000,
  /** A webhook whose deliveries all failed for at least this long is disabled when the first of them is given up. */
  webhookFailingMs: 12 * 3_600_000,
  /** Deliveries of a team that may be under way. */
  webhookDeliveriesAtOnce: 8,
  /** The same while the newest attempt of the team failed. */
  webhookDeliveriesAtOnceFailing: 1,
  /** Attempts of a delivery that can be looked at. */
  webhookAttemptsKept: 50,
  /** Deliveries that are over can be looked at for this long. */
  webhookDeliveryKeptMs: 30 * 24 * 3_600_000,
  /** An answer with credentials for a bucket. */
  bucketCredentialsAnswerBytes: 64 * 1024,
  bucketCredentialsTries: 3,
  /** An offer whose last boot failed stays behind its equals for this long after its quarantine. */
  failedBootMemoryMs: 30 * 60_000,
  /** Quarantine doubles with each failed boot in a row, up to this. */
  offerQuarantineMaxMs: 60 * 60_000,
  /** A supplier that has not answered for this long is silent, and nothing is placed with it. */
  supplierSilentMs: 30_000,
  /** A launch that takes longer has an unknown outcome; it is followed up. */
  launchTimeoutMs: 15_000,
  /** Longest that an observe, terminate, list or offers call may take. */
  supplierCallMs: 10_000,
  /** How often an order that is out is looked at. */
  attemptCheckMs: 3_000,
  /** Longest wait between tries to end what a supplier does not let go of. */
  attemptCheckMaxMs: 5 * 60_000,
  /** A running order that its supplier proves gone is lost this long after: records under way may still arrive. */
  goneToLostMs: 15_000,
  /** Commands of one kind that a process runs as one transaction. */
  groupMembers: 32,
  /** Such transactions of one kind that a process has under way. */
  groupsAtOnce: 2,
  /** What a member of a group may bring; a larger one is a transaction of its own. */
  groupMemberBytes: 32 * 1024,
  /** How long a group waits for a lock before each of its members goes alone. */
  groupLockMs: 100,
  /** Stages that one claim takes at once. */
  claimBatch: 64,
  /** A reason that a workload waits for is told by an event at most once in this time. */
  waitingEventMs: 60_000,
  /** How far the wall clock may depart from the monotonic one between two looks before it counts as having been set. */
  clockStepMs: 5_000,
  /** How far the clocks of two machines may be apart for neither to take the other's waits and claims for over or for ones
   * from before its clock was set back. A claim that is renewed has to have at least as much left. */
  clockSkewMs: 15_000,
  /** How long after its boot deadline a connected host may take to bring files before its generation is lost. */
  stagingTimeoutMs: 15 * 60_000,
} as const;
