-- The region of the connection that an asset's rows came from.
alter table data.asset add column region text null;
