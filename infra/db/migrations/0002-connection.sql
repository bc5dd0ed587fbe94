create table "data"."connection" ("id" text not null, "tenant_id" text not null, "name" text not null, "kind" text not null, "secret_id" text not null, "secret_version" int not null, "scope" text not null, "region" text null, "branch" text null, "entity" text null, "project" text null, "egress_hosts" text[] not null, "live_mode" boolean not null, "verified_at" timestamptz(3) not null, "created_at" timestamptz(3) not null, "created_by" text not null, "deleted_at" timestamptz(3) null, primary key ("id"));
create index connection_live_secret on data.connection (secret_id) where deleted_at is null;
create unique index connection_live_name on data.connection (tenant_id, name) where deleted_at is null;

create table "data"."connection_use" ("holder_id" text not null, "connection_id" text not null, "tenant_id" text not null, "created_at" timestamptz(3) not null, primary key ("holder_id", "connection_id"));
create index "connection_use_connection" on "data"."connection_use" ("connection_id");

alter table "data"."connection" add constraint "connection_kind_check" check ("kind" in ('postgres', 'neon', 'supabase', 'wandb'));
alter table "data"."connection" add constraint "connection_scope_check" check ("scope" in ('read', 'write', 'readwrite'));
