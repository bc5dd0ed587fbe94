-- What retention needs: bytes of results in rows of their own, and what it has ended.
-- Bytes in the store of results, so that they can go without a reference losing them.
create table "compute"."result_object" ("sha256" text not null, "bytes" bigint not null, "stored_at" timestamptz(3) not null, "removing_since" timestamptz(3) null, primary key ("sha256"));

-- What retention has ended, and the indexes that find what it ends next.
alter table "compute"."workload" add column "results_removed_at" timestamptz(3) null, add column "placements_forgotten_at" timestamptz(3) null;
alter table "compute"."placement" add column "log_removed_at" timestamptz(3) null;
create index workload_results_kept on compute.workload (terminal_at) where terminal_at is not null and results_removed_at is null;
create index workload_placements_kept on compute.workload (terminal_at) where results_removed_at is not null and placements_forgotten_at is null;

-- References to stored bytes are looked for by hash.
create index "output_sha256" on "compute"."output" ("sha256");
create index placement_log_sha256 on compute.placement (log_sha256) where log_sha256 is not null;
create index manifest_objects on compute.manifest using gin (manifest jsonb_path_ops);
