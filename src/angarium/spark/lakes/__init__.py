"""The forms an archive can have: a Delta table, an Iceberg table, or plain Parquet with a manifest.

All of them are Parquet files, partitioned by topic and date, beside something that says, atomically
with the files, up to which offset each partition is archived. `angarium.spark.lake.Lake` is the one
face of all forms; `form` says what each has to be able to do.
"""
