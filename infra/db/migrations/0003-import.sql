-- Imports: assets that are there while their source is fetched, and teams' accounts at GitHub.

alter table "data"."asset" add column "error_message" text null, add column "change_seq" int not null default 0;
create index asset_unfinished on data.asset (tenant_id, state) where state in ('importing', 'failed', 'deleting');

create table "data"."asset_import" ("asset_id" text not null, "tenant_id" text not null, "master_key_id" text not null, "wrapped_key" bytea not null, "ciphertext" bytea not null, "resumable" boolean not null, "fence" int not null, "lease_until" timestamptz(3) not null, "deadline_at" timestamptz(3) not null, "created_at" timestamptz(3) not null, primary key ("asset_id"));
create index "asset_import_lease" on "data"."asset_import" ("lease_until");

create table "data"."github_account" ("tenant_id" text not null, "login" text not null, "connected_at" timestamptz(3) not null, "connected_by" text not null, "master_key_id" text not null, "wrapped_key" bytea not null, "ciphertext" bytea not null, primary key ("tenant_id"));
