"""Topics as Spark tables: the data source `angarium`, and sessions that suit it.

    spark.read.format("angarium").option("subscribe", "orders").load()

Executors read through our own client and hand Spark Arrow batches made of broker batches, so that
no Python touches a record. `pyspark_angarium` registers the source with Spark; docs/guides/spark.md
shows how it is used, docs/reference/spark.md says what every option means.

Planning (`options`, `boundaries`, `offsets`, `ranges`, `allotment`) is plain Python over values and
needs neither Spark nor a broker. `link` reaches the broker, `rows` and `reading` turn what it holds
into Arrow, `source`, `stream` and `sink` are the faces that Spark sees.
"""
