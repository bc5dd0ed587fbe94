-- A team's waiting stages in one order also where two were made at the same moment. No code needs the index by its name.
create index stage_in_order on compute.stage (tenant_id, created_at, next_try_at, id) where status = 'placing';
drop index compute.stage_fair;
