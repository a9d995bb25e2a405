"""Structured values: what is in a record's value, as columns, so that `SELECT order.amount` works.

    .options(valueFormat="json", valueSchema="amount double, customer string", valueColumn="order")

A *codec* turns a column of bytes into a column of structs and back: `json_values` and
`json_texts` by whole columns, `avro_values` and `protobuf_values` record by record in compiled
code. `reading` decides what happens to a value that cannot be decoded; `options` says what was
asked for. Everything happens in Spark's Python workers; there is no jar.
"""
