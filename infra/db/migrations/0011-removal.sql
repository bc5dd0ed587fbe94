-- Which stored bytes are being removed: few of many.
create index asset_object_removing on data.asset_object (removing_since) where removing_since is not null;
create index result_object_removing on compute.result_object (removing_since) where removing_since is not null;
