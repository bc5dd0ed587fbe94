-- What happens to a team beside its runs, numbered for each team without gaps.
create table data.account_stream (tenant_id text not null, last_seq int not null, primary key (tenant_id));

create table data.account_event (id text not null, tenant_id text not null, seq int not null, type text not null, payload jsonb not null, created_at timestamptz(3) not null, primary key (id));
create unique index account_event_order on data.account_event (tenant_id, seq);
create index account_event_type on data.account_event (tenant_id, type, created_at);

-- Events on their way to webhooks. A row that is pending is work; the others are kept for a while to be looked at.
create table data.webhook_delivery (id text not null, tenant_id text not null, event_id text null, event_type text not null, body text null, state text check (state in ('pending', 'delivered', 'failed')) not null, attempts int not null, tries int not null, attempt_log jsonb not null, due_at timestamptz(3) null, queued_until timestamptz(3) null, claimed_until timestamptz(3) null, retries_until timestamptz(3) not null, last_error text null, created_at timestamptz(3) not null, ended_at timestamptz(3) null, primary key (id));
create index webhook_delivery_pending on data.webhook_delivery (tenant_id, due_at) where state = 'pending';
-- Few rows however much is pending: how many deliveries of a team are under way is asked for each of them.
create index webhook_delivery_busy on data.webhook_delivery (tenant_id) where state = 'pending' and (queued_until is not null or claimed_until is not null);
create index webhook_delivery_list on data.webhook_delivery (tenant_id, created_at, id);
create index webhook_delivery_old on data.webhook_delivery (created_at) where state <> 'pending';

alter table data.webhook add column failures int not null default 0, add column failing_since timestamptz(3) null;
