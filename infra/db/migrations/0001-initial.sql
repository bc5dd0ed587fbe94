create schema if not exists "compute";
create schema if not exists "data";
create schema if not exists "pools";
create schema if not exists "sandboxes";
create table "compute"."account" ("id" text not null, "balance_micros" bigint not null, "held_micros" bigint not null, "monthly_cap_micros" bigint null, "month_spend_micros" bigint not null, "month_start" timestamptz(3) not null, "payment_method" boolean not null, "concurrent_runs_limit" int not null, "active_runs" int not null default 0, "books_balanced" boolean not null default true, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, primary key ("id"));

create table "compute"."api_key" ("id" text not null, "team_id" text not null, "member_id" text null, "name" text not null, "hash" text not null, "last_four" text not null, "scopes" text[] not null, "expires_at" timestamptz(3) null, "revoked_at" timestamptz(3) null, "last_used_at" timestamptz(3) null, "created_at" timestamptz(3) not null, "created_by" text null, primary key ("id"));
alter table "compute"."api_key" add constraint "api_key_hash_unique" unique ("hash");
create index "api_key_team" on "compute"."api_key" ("team_id", "id");

create table "compute"."api_key_audit" ("id" text not null, "team_id" text not null, "key_id" text not null, "action" text not null, "by_key_id" text null, "detail" text null, "created_at" timestamptz(3) not null, primary key ("id"));
create index "api_key_audit_key" on "compute"."api_key_audit" ("key_id", "id");

create table "data"."asset" ("id" text not null, "tenant_id" text not null, "kind" text not null, "name" text not null, "state" text not null, "revision" text null, "sha256" text null, "format" text null, "stored_bytes" bigint not null, "imported_bytes" bigint not null, "created_at" timestamptz(3) not null, "ready_at" timestamptz(3) null, "deleted_at" timestamptz(3) null, "error" text null, primary key ("id"));
create index "asset_sha256" on "data"."asset" ("sha256");
create index "asset_tenant" on "data"."asset" ("tenant_id", "id");

create table "data"."asset_object" ("sha256" text not null, "bytes" bigint not null, "created_at" timestamptz(3) not null, "removing_since" timestamptz(3) null, primary key ("sha256"));

create table "data"."asset_pin" ("holder_id" text not null, "asset_id" text not null, "tenant_id" text not null, "created_at" timestamptz(3) not null, primary key ("holder_id", "asset_id"));
create index "asset_pin_asset" on "data"."asset_pin" ("asset_id");

create table "data"."asset_upload" ("id" text not null, "tenant_id" text not null, "staged_bytes" bigint not null, "sha256" text null, "started_at" timestamptz(3) not null, "seen_at" timestamptz(3) not null, primary key ("id"));
create index "asset_upload_sha256" on "data"."asset_upload" ("sha256");
create index "asset_upload_tenant" on "data"."asset_upload" ("tenant_id");

create table "compute"."attempt" ("id" text not null, "placement_id" text not null, "tenant_id" text not null, "workload_id" text not null, "number" int not null, "generation" int not null, "fence" int not null, "state" text not null, "supplier" text not null, "offer_id" text not null, "sku" text not null, "region" text not null, "capacity_id" text not null, "cpu_millis" int not null, "memory_mb" int not null, "gpus" int not null, "released_at" timestamptz(3) null, "token_hash" text null, "token_expires_at" timestamptz(3) not null, "session_hash" text null, "boot_deadline_at" timestamptz(3) not null, "failure_code" text null, "failure_message" text null, "terminate_requested_at" timestamptz(3) null, "next_check_at" timestamptz(3) not null default now(), "fruitless_checks" int not null default 0, "gone_seen_at" timestamptz(3) null, "supplier_said" text null, "gone_at" timestamptz(3) null, "created_at" timestamptz(3) not null, primary key ("id"));
create index "attempt_placement_id_index" on "compute"."attempt" ("placement_id");
create index attempt_open on compute.attempt (next_check_at) where state <> 'gone';

create table "compute"."capacity" ("id" text not null, "supplier" text not null, "cpu_millis" int not null, "cpu_millis_used" int not null, "memory_mb" int not null, "memory_mb_used" int not null, "gpus" int not null, "gpus_used" int not null, "slots" int not null, "slots_used" int not null, "seen_at" timestamptz(3) not null, primary key ("id"));

create table "infra"."idempotency_key" ("id" text not null, "tenant_id" text not null, "fingerprint" text not null, "object_id" text not null, "created_at" timestamptz(3) not null, primary key ("id"));
create index "idempotency_key_tenant_id_index" on "infra"."idempotency_key" ("tenant_id");
create index "idempotency_key_object_id_index" on "infra"."idempotency_key" ("object_id");

create table "compute"."ledger_entry" ("id" text not null, "tenant_id" text not null, "subject_id" text not null, "correlation_id" text not null, "account" text not null, "entry_type" text not null, "debit_micros" bigint not null, "credit_micros" bigint not null, "evidence" jsonb null, "created_at" timestamptz(3) not null, primary key ("id"));
create index "ledger_by_tenant" on "compute"."ledger_entry" ("tenant_id", "id");
create index "ledger_by_subject" on "compute"."ledger_entry" ("subject_id", "id");

create table "compute"."log_chunk" ("workload_id" text not null, "seq" int not null, "tenant_id" text not null, "placement_id" text not null, "stage_id" text not null, "generation" int not null, "byte_offset" bigint not null, "bytes" bytea not null, "created_at" timestamptz(3) not null, primary key ("workload_id", "seq"));

create table "compute"."manifest" ("id" text not null, "tenant_id" text not null, "workload_id" text not null, "stage_id" text not null, "generation" int not null, "sequence" int not null, "final" boolean not null, "manifest" jsonb not null, "created_at" timestamptz(3) not null, primary key ("id"));
create unique index manifest_order on compute.manifest (workload_id, stage_id, generation, sequence);

create table "compute"."member" ("id" text not null, "team_id" text not null, "email" text not null, "name" text not null, "role" text not null, "created_at" timestamptz(3) not null, primary key ("id"));
alter table "compute"."member" add constraint "member_email" unique ("team_id", "email");

create table "compute"."offer" ("id" text not null, "supplier" text not null, "sku" text not null, "region" text not null, "capacity_id" text not null, "compute_class" text not null, "vcpus" double precision not null, "host_memory_gb" double precision not null, "disk_gb" double precision not null, "network_gbps" double precision null, "accelerator" text null, "gpu_count" int not null, "device_memory_gb" double precision not null, "rate_micros_per_hour" bigint not null, "interruptible" boolean not null, "simulated" boolean not null, "isolated" boolean not null, "note" text null, "expected_boot_seconds" double precision not null, "pool_id" text null, "tenant_id" text null, "seen_at" timestamptz(3) not null, "withdrawn_at" timestamptz(3) null, "quarantined_until" timestamptz(3) null, "failures_in_row" int not null, "version" int not null default 0, primary key ("id"));
create index "offer_capacity_id_index" on "compute"."offer" ("capacity_id");
create index "offer_changes" on "compute"."offer" ("supplier", "version");
create unique index offer_identity on compute.offer (supplier, sku, region);

create table "infra"."outbox" ("id" text not null, "job" text not null, "payload" jsonb not null, "due_at" timestamptz(3) not null, "created_at" timestamptz(3) not null, primary key ("id"));
create index "outbox_due" on "infra"."outbox" ("due_at");

create table "compute"."output" ("id" text not null, "tenant_id" text not null, "workload_id" text not null, "stage_id" text not null, "generation" int not null, "name" text not null, "sha256" text not null, "bytes" bigint not null, "media" text not null, "is_tar" boolean not null, "removed_at" timestamptz(3) null, "created_at" timestamptz(3) not null, primary key ("id"));
create unique index output_identity on compute.output (workload_id, stage_id, generation, name);

create table "compute"."placement" ("id" text not null, "tenant_id" text not null, "workload_id" text not null, "stage_run_id" text not null, "stage_id" text not null, "generation" int not null, "fence" int not null, "state" text not null, "order_id" text not null, "offer_id" text not null, "sku" text not null, "region" text not null, "compute_class" text not null, "accelerator" text null, "gpu_count" int not null, "device_memory_gb" double precision not null, "vcpus" double precision not null, "memory_gb" double precision not null, "interruptible" boolean not null, "simulated" boolean not null, "cpu_fallback" boolean not null, "note" text null, "isolation" jsonb null, "rate_micros_per_hour" bigint not null, "fee_basis_points" int not null, "held_micros" bigint not null, "charged_micros" bigint null, "candidates" int not null, "rejected" jsonb not null, "attempts" int not null, "provisioned_at" timestamptz(3) not null, "running_at" timestamptz(3) null, "lease_expires_at" timestamptz(3) null, "last_beat_at" timestamptz(3) null, "want" text not null, "applied_seq" int not null, "exit_code" int null, "signal" text null, "start_failure" jsonb null, "output_failure" text null, "oom" boolean not null, "killed_by" text null, "ran_ms" bigint null, "ended_at" timestamptz(3) null, "gone_at" timestamptz(3) null, "outcome" text null, "message" text null, "interrupt_trigger" text null, "superseded_by" int null, "log_bytes" bigint not null, "log_sha256" text null, "log_truncated" boolean not null, "log_tail_lost" boolean not null, "log_complete" boolean not null, "log_committed_at" timestamptz(3) null, "dropped_units" int not null default 0, "created_at" timestamptz(3) not null, primary key ("id"));
create index "placement_workload_id_index" on "compute"."placement" ("workload_id");
create index placement_lease on compute.placement (lease_expires_at) where state in ('provisioning', 'running');
create unique index placement_generation on compute.placement (stage_run_id, generation);

create table "pools"."pool" ("id" text not null, "tenant_id" text not null, "name" text not null, "kind" text not null, "state" text not null, "wait_policy" text not null, "burst_approval" text not null, "burst_timeout_behaviour" text not null, "predict_enabled" boolean not null, "route_enabled" boolean not null, "sandbox_capable" boolean not null, "wait_alpha" double precision not null, "waiting_budget_pct" double precision not null, "burst_threshold_micros" bigint not null, "platform_rate_micros" bigint not null, "owned_cost_micros_per_hour" bigint not null, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, primary key ("id"));
create index "pool_tenant" on "pools"."pool" ("tenant_id", "id");

create table "data"."secret" ("id" text not null, "tenant_id" text not null, "name" text not null, "version" int not null, "created_at" timestamptz(3) not null, "retired_at" timestamptz(3) null, primary key ("id"));
create unique index secret_live_name on data.secret (tenant_id, name) where retired_at is null;

create table "data"."secret_pin" ("holder_id" text not null, "name" text not null, "tenant_id" text not null, "secret_id" text not null, "version" int not null, "created_at" timestamptz(3) not null, primary key ("holder_id", "name"));
create index "secret_pin_version" on "data"."secret_pin" ("secret_id", "version");

create table "data"."secret_version" ("secret_id" text not null, "version" int not null, "tenant_id" text not null, "master_key_id" text not null, "wrapped_key" bytea not null, "ciphertext" bytea not null, "created_at" timestamptz(3) not null, "retired_at" timestamptz(3) null, primary key ("secret_id", "version"));
create index "secret_version_retired" on "data"."secret_version" ("retired_at");

create table "compute"."stage" ("id" text not null, "tenant_id" text not null, "workload_id" text not null, "stage_id" text not null, "position" int not null, "status" text not null, "spec" jsonb not null, "continuity_mode" text not null, "generation" int not null, "fence" int not null, "completed_units" int not null, "total_units" int not null, "last_loss" double precision null, "metric_rate" double precision null, "metric_step" int null, "reason" text null, "exit_code" int null, "signal" text null, "next_try_at" timestamptz(3) not null, "last_tried_at" timestamptz(3) null, "failed_offer_ids" text[] not null, "recoveries" int not null, "started_at" timestamptz(3) null, "ended_at" timestamptz(3) null, "created_at" timestamptz(3) not null, primary key ("id"));
create index stage_fair on compute.stage (tenant_id, created_at, next_try_at) where status = 'placing';
create index stage_to_place on compute.stage (next_try_at) where status = 'placing';
create unique index stage_by_workload on compute.stage (workload_id, stage_id);

create table "compute"."supplier" ("id" text not null, "version" int not null, "seen_at" timestamptz(3) not null, primary key ("id"));

create table "compute"."team" ("id" text not null, "name" text not null, "created_at" timestamptz(3) not null, primary key ("id"));

create table "compute"."unit_observation" ("workload_id" text not null, "stage_id" text not null, "unit_id" text not null, "ms" double precision not null, "created_at" timestamptz(3) not null, primary key ("workload_id", "stage_id", "unit_id"));

create table "data"."webhook" ("tenant_id" text not null, "url" text not null, "version" int not null, "master_key_id" text not null, "wrapped_key" bytea not null, "ciphertext" bytea not null, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, "disabled_at" timestamptz(3) null, primary key ("tenant_id"));

create table "compute"."workload" ("id" text not null, "tenant_id" text not null, "owner_user_id" text null, "key_id" text not null, "name" text not null, "status" text not null, "revision" int not null, "reason" text null, "message" text null, "waiting_reason" text null, "waiting_since" timestamptz(3) null, "payload" jsonb not null, "max_cost_micros" bigint null, "complete_by" timestamptz(3) null, "spend_micros" bigint not null, "held_micros" bigint not null, "budget_warned_percent" int not null default 0, "cancel_requested_at" timestamptz(3) null, "event_seq" int not null, "log_seq" int not null, "exit_code" int null, "signal" text null, "links" jsonb not null default '[]', "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, "terminal_at" timestamptz(3) null, "resources_released_at" timestamptz(3) null, "settled_at" timestamptz(3) null, primary key ("id"));
create index workload_due on compute.workload (complete_by) where complete_by is not null and status not in ('completed', 'failed', 'cancelled');
create index workload_active on compute.workload (tenant_id) where status not in ('completed', 'failed', 'cancelled');
create index "workload_list" on "compute"."workload" ("tenant_id", "created_at", "id");

create table "compute"."workload_event" ("id" text not null, "tenant_id" text not null, "workload_id" text not null, "seq" int not null, "type" text not null, "payload" jsonb not null, "created_at" timestamptz(3) not null, primary key ("id"));
create unique index workload_event_order on compute.workload_event (workload_id, seq);

create table "sandboxes"."workspace" ("id" text not null, "tenant_id" text not null, "name" text not null, "size_gb" double precision not null, "holder_id" text null, "saved_at" timestamptz(3) null, "stored_bytes" bigint null, "last_error" text null, "saving_for_termination" boolean not null, "billing_status" text not null, "created_at" timestamptz(3) not null, primary key ("id"));
alter table "sandboxes"."workspace" add constraint "workspace_name" unique ("tenant_id", "name");

alter table "compute"."api_key_audit" add constraint "api_key_audit_action_check" check ("action" in ('created', 'revoked', 'scope_refused'));

alter table "data"."asset" add constraint "asset_state_check" check ("state" in ('importing', 'ready', 'failed', 'deleting', 'deleted'));
alter table "data"."asset" add constraint "asset_format_check" check ("format" in ('tar', 'file'));

alter table "compute"."attempt" add constraint "attempt_state_check" check ("state" in ('launching', 'booting', 'running', 'failed', 'ended', 'gone'));

alter table "compute"."ledger_entry" add constraint "ledger_entry_account_check" check ("account" in ('customer_credit', 'compute_revenue', 'platform_fee_revenue', 'granted_credit', 'operator_loss', 'supplier_cost'));

alter table "compute"."member" add constraint "member_role_check" check ("role" in ('admin', 'member'));

alter table "compute"."offer" add constraint "offer_compute_class_check" check ("compute_class" in ('vm', 'accelerator'));

alter table "compute"."placement" add constraint "placement_state_check" check ("state" in ('provisioning', 'running', 'ended', 'closed'));
alter table "compute"."placement" add constraint "placement_want_check" check ("want" in ('run', 'cancel', 'stop_budget', 'stop_deadline', 'drain'));
alter table "compute"."placement" add constraint "placement_killed_by_check" check ("killed_by" in ('cancel', 'deadline', 'funding', 'lease', 'memory', 'disk', 'drain', 'host_shutdown'));

alter table "pools"."pool" add constraint "pool_wait_policy_check" check ("wait_policy" in ('never', 'after_wait', 'cheaper'));
alter table "pools"."pool" add constraint "pool_burst_approval_check" check ("burst_approval" in ('auto', 'above_threshold', 'always'));
alter table "pools"."pool" add constraint "pool_burst_timeout_behaviour_check" check ("burst_timeout_behaviour" in ('keep_waiting', 'cancel'));

alter table "compute"."stage" add constraint "stage_status_check" check ("status" in ('pending', 'placing', 'starting', 'running', 'completed', 'failed', 'cancelled'));

alter table "compute"."workload" add constraint "workload_status_check" check ("status" in ('accepted', 'planning', 'reserving', 'provisioning', 'running', 'recovering', 'freezing', 'frozen', 'completed', 'failed', 'cancelled'));

alter table "sandboxes"."workspace" add constraint "workspace_billing_status_check" check ("billing_status" in ('disabled_no_approved_storage_rate', 'metered_subject_to_account_limits'));
